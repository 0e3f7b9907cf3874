"""Globs over names of queues: `*` matches any characters, `?` one, the rest itself."""

import re
from functools import lru_cache


@lru_cache(maxsize=1024)
def pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that fully matches names matched by any glob, in linear time."""
    return re.compile("|".join(map(_expression, globs)) if globs else r"(?!)", re.DOTALL)


def _expression(glob: str) -> str:
    first, *rest = (re.escape(part).replace(r"\?", ".") for part in re.split(r"\*+", glob))
    if not rest:
        return first
    # The earliest match of each part between two stars is as good as any other: no backtracking.
    *between, last = rest
    return first + "".join(f"(?>.*?{part})" for part in between) + f".*{last}"
