"""Globs over names of queues: `*` is any run of characters, `?` is one; everything else stands for itself."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=1024)
def pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return what fully matches the names that any of the globs matches, in time linear in the name's length."""
    return re.compile("|".join(map(_expression, globs)) if globs else r"(?!)", re.DOTALL)


def _expression(glob: str) -> str:
    first, *rest = (re.escape(part).replace(r"\?", ".") for part in re.split(r"\*+", glob))
    if not rest:
        return first
    # The earliest place for each part between two stars is as good as any other: never look for a second one.
    *between, last = rest
    return first + "".join(f"(?>.*?{part})" for part in between) + f".*{last}"
