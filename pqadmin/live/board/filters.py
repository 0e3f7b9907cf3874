"""The filter language of the overview: words of a name and terms such as `level:critical group:eu depth>1000 age>5m`.

All parts must hold. A leading `-` negates a part. A part that is not understood is reported and left out, so
that a slip of the pen never hides every queue.
"""

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.live.board.health import LEVELS
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import label_of
from queues.admin import HealthCode, name_pattern

#: Longer filters are cut.
MAX_LENGTH = 400
MAX_PARTS = 20

Test = Callable[[Row, datetime], bool]

_TERM = re.compile(r"(?P<field>[a-z-]+)(?P<op>>=|<=|=|>|<)(?P<value>[0-9.]+)(?P<unit>[a-zA-Z]*)")
_BY_AGE = re.compile(r"(?:^|\s)-?age[<>=]")
_NUMBER_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_AGE_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
}
_NUMBERS: dict[str, Callable[[Row, datetime], float | None]] = {
    "depth": lambda row, now: row.ready,
    "ready": lambda row, now: row.ready,
    "delayed": lambda row, now: row.status.totals.delayed,
    "leased": lambda row, now: row.status.totals.leased,
    "dead": lambda row, now: row.status.totals.dead,
    "in": lambda row, now: row.rate_in,
    "out": lambda row, now: row.rate_out,
}
#: Fields that are a time, in seconds.
_TIMES: dict[str, Callable[[Row, datetime], float | None]] = {
    "age": lambda row, now: None if row.status.oldest is None else (now - row.status.oldest).total_seconds(),
    "wait": lambda row, now: _wait(row),
}
REASONS = tuple(code.value for code in HealthCode)
_FIELDS = ", ".join((*_NUMBERS, *_TIMES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter as understood: every test must pass; `problems` says what was not understood."""

    text: str
    tests: Sequence[Test]
    problems: Sequence[str]
    #: It asks for the reader's own favorites.
    personal: bool = False
    #: It asks for ages, which grow without a change.
    ages: bool = False
    #: Parts with a word before the colon that is no key, looked for in names; each with its likely meaning or "".
    in_names: Sequence[tuple[str, str]] = ()

    def __bool__(self) -> bool:
        return bool(self.tests)

    def passes(self, row: Row, now: datetime) -> bool:
        """Say whether a row is wanted."""
        return all(test(row, now) for test in self.tests)


def parse(text: str, favorites: Container[int] = ()) -> Filter:
    """Understand a filter; `favorites` are the ids of the reader's queues."""
    text = text.replace("\0", "")[:MAX_LENGTH].strip()
    tests: list[Test] = []
    problems: list[str] = []
    for part in text.split()[:MAX_PARTS]:
        negated = part.startswith("-") and len(part) > 1
        try:
            test = _part(part[1:] if negated else part, favorites)
        except ValueError as error:
            problems.append(str(error))
            continue
        tests.append(_not(test) if negated else test)
    personal, ages = "is:favorite" in text.casefold(), _BY_AGE.search(text) is not None
    named = [(part, _near(part)) for part in text.split()[:MAX_PARTS] if _is_name_with_colon(part)]
    return Filter(text=text, tests=tests, problems=problems, personal=personal, ages=ages, in_names=named)


def _not(test: Test) -> Test:
    return lambda row, now: not test(row, now)


def _part(part: str, favorites: Container[int]) -> Test:
    key, colon, value = part.partition(":")
    # A name may have colons: only these words before the first one make a term of it.
    if colon and key in _KEYS:
        return _term(part, key, value.casefold(), favorites)
    if any(sign in part for sign in "<>="):
        return _comparison(part)
    return _name(part)


#: What may follow a key, and what is said of anything else.
_VALUES = {
    "level": (LEVELS, gettext_lazy("“%(part)s”: a level is %(levels)s.")),
    "reason": (REASONS, gettext_lazy("“%(part)s”: a reason is %(reasons)s.")),
    "kind": (("priority", "fifo"), gettext_lazy("“%(part)s”: a kind is priority or fifo.")),
    **dict.fromkeys(("problem", "state"), ((), gettext_lazy("“%(part)s”: ask for level: or reason: instead."))),
    "is": (("favorite",), gettext_lazy("“%(part)s”: only is:favorite is understood.")),
}


#: Words before a colon that make a term of a part.
_KEYS = ("group", *_VALUES)


def _is_name_with_colon(part: str) -> bool:
    key, colon, _value = part.removeprefix("-").partition(":")
    return bool(key and colon) and key not in _KEYS and not any(sign in part for sign in "<>=")


def _near(part: str) -> str:
    """Return the part with the key that its first word is much like; empty if there is none."""
    key, _colon, value = part.removeprefix("-").partition(":")
    near = get_close_matches(key.casefold(), _KEYS, n=1)
    return f"{'-' * part.startswith('-')}{near[0]}:{value}" if near else ""


def _term(part: str, key: str, wanted: str, favorites: Container[int]) -> Test:
    if key == "group":
        return _group(wanted.rstrip(":"))
    allowed, words = _VALUES[key]
    if wanted not in allowed:
        raise ValueError(words % {"part": part, "levels": ", ".join(LEVELS), "reasons": ", ".join(REASONS)})
    if key == "reason":
        return lambda row, now: wanted in row.verdict.codes
    if key == "kind":
        return lambda row, now: row.status.kind == wanted
    if key == "is":
        return lambda row, now: row.status.id in favorites
    return lambda row, now: row.level == wanted


def _group(group: str) -> Test:
    if "*" in group:
        pattern = name_pattern((group,))
        return lambda row, now: pattern.fullmatch(label_of(row.status.name).rstrip(":").casefold()) is not None
    # The groups within a group are in it.
    return lambda row, now: f"{label_of(row.status.name).casefold()}:".startswith(f"{group}:")


def _comparison(part: str) -> Test:
    match = _TERM.fullmatch(part)
    if match is None or match["field"] not in _TIMES | _NUMBERS:
        words = _("“%(part)s” is not understood; compare %(fields)s with a number.")
        raise ValueError(words % {"part": part, "fields": _FIELDS})
    units = _AGE_UNITS if match["field"] in _TIMES else _NUMBER_UNITS
    try:
        limit = float(match["value"]) * units[match["unit"].casefold()]
    except ValueError:
        raise ValueError(_("“%(part)s”: that is no number.") % {"part": part}) from None
    except KeyError:
        words = _("“%(part)s”: a unit is %(units)s.")
        raise ValueError(words % {"part": part, "units": ", ".join(filter(None, units))}) from None
    compare = _COMPARE[match["op"]]
    value_of = (_TIMES | _NUMBERS)[match["field"]]

    def test(row: Row, now: datetime) -> bool:
        value = value_of(row, now)
        return value is not None and compare(value, limit)

    return test


def _wait(row: Row) -> float | None:
    """Return how long what comes now will wait, at the present rate; for ever where nothing leaves."""
    if row.ready is None or row.rate_out is None:
        return None
    if not row.ready:
        return 0.0
    return row.ready / row.rate_out if row.rate_out else float("inf")


def _name(part: str) -> Test:
    wanted = part.casefold()
    if "*" in wanted:
        pattern = name_pattern((wanted,))
        return lambda row, now: pattern.fullmatch(row.status.name.casefold()) is not None
    return lambda row, now: wanted in row.status.name.casefold()
