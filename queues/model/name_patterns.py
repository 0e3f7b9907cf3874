"""Globs over names of queues: `*` matches any characters, `?` one, the rest itself."""

import re
import unicodedata
from functools import lru_cache

from queues.errors import BadGlob
from queues.model.names import MAX_CHARACTERS, canonical, check_name

#: Wildcards in one glob; a glob with more is unreadable.
MAX_WILDCARDS = 16


def check_glob(text: str) -> str:
    """Return the glob in its one spelling. Raise `BadGlob`, or `BadName` for what no name can hold."""
    glob = re.sub(r"\*+", "*", canonical(text.strip()))
    if not glob:
        raise BadGlob("A glob is a queue's name in which * stands for any characters and ? for one.")
    if len(glob) > MAX_CHARACTERS:
        raise BadGlob(
            "A glob has at most {most} characters; this one has {size:,}.", most=MAX_CHARACTERS, size=len(glob)
        )
    if sum(glob.count(wildcard) for wildcard in "*?") > MAX_WILDCARDS:
        raise BadGlob("A glob has at most {most} wildcards.", most=MAX_WILDCARDS)
    # A combining mark may follow a wildcard as it follows a letter: check with a letter in the wildcard's place.
    check_name(unicodedata.normalize("NFC", re.sub(r"[*?]", "x", glob)))
    return glob


@lru_cache(maxsize=1024)
def pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that fully matches names matched by any glob, in linear time."""
    return re.compile("|".join(map(_expression, globs)) if globs else r"(?!)", re.DOTALL)


def specificity(glob: str) -> tuple[int, str]:
    """Return by what globs are sorted, the most specific first: the most literal characters, then by text."""
    return sum(glob.count(wildcard) for wildcard in "*?") - len(glob), glob


def _expression(glob: str) -> str:
    first, *rest = (re.escape(part).replace(r"\?", ".") for part in re.split(r"\*+", glob))
    if not rest:
        return first
    # The earliest match of each part between two stars is as good as any other: no backtracking.
    *between, last = rest
    return first + "".join(f"(?>.*?{part})" for part in between) + f".*{last}"
