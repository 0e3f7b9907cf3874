"""JSON as an import takes it: exact or refused.

Whole numbers keep every digit. Refused: NaN, Infinity, numbers beyond a double's range, a name twice in one object,
lone surrogates, nesting deeper than Python follows. Of one member the source text is kept, so that its value can be
stored as it was written.
"""

import json
import math
import re
from dataclasses import dataclass

import msgspec

from queues.errors import Worded, Words

#: Decimal digits. Longer integers are legal inside a value (only their text is kept) but convert in quadratic time.
MAX_INTEGER_DIGITS = 1_000
#: The member of which the source is kept.
SOURCE = "value_json"

_SURROGATE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


class BadJSON(Worded):
    """The text is not JSON, or not the exact kind that an import takes. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongInteger:
    """A whole number of so many digits that it is kept as text only."""

    digits: int


def parse_members(text: str, *, longest: int) -> dict[str, object]:
    """Read the text as one JSON object, of `value_json` the source. Raise `BadJSON` saying what is wrong and where.

    In a text of more than `longest` characters, text and numbers are read, lists and objects are not: they take much
    longer, and other threads wait meanwhile.
    """
    if len(text) > longest and any(source.startswith(("[", "{")) for source in _sources(text).values()):
        raise BadJSON("a list or an object in a line of {size:,} characters is too large", size=len(text))
    members = parse(text)
    if not isinstance(members, dict):
        raise BadJSON('not a JSON object: a line holds one object like {"value": "…", "priority": 5}')
    if SOURCE in members:
        members[SOURCE] = _sources(text)[SOURCE]
    return members


def _sources(text: str) -> dict[str, str]:
    """Return how the members of an object are written."""
    try:
        found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        raise BadJSON("not JSON") from None
    except RecursionError:
        raise BadJSON("nested too deeply") from None
    return {name: bytes(source).decode() for name, source in found.items()}


def parse(text: str) -> object:
    """Read the text as one JSON value; raise `BadJSON` saying what is wrong and where."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadJSON("not JSON at character {at}: {what}", at=error.pos + 1, what=_plain(error.msg)) from None
    except RecursionError:
        raise BadJSON("nested too deeply") from None
    _refuse_lone_surrogates(value, text)
    return value


def _plain(message: str) -> str:
    plain = message[:1].lower() + message[1:]
    return _EXPECTED.get(plain, plain)


#: The most frequent errors of Python.
_EXPECTED: dict[str, Words] = {
    words: words
    for words in (
        Words("expecting value"),
        Words("expecting ',' delimiter"),
        Words("expecting ':' delimiter"),
        Words("expecting property name enclosed in double quotes"),
        Words("illegal trailing comma before end of object"),
        Words("illegal trailing comma before end of array"),
        Words("unterminated string starting at"),
        Words("invalid control character at"),
        Words("extra data"),
    )
}


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise BadJSON("the name {name} is given twice in one object", name=json.dumps(name[:80]))
            seen.add(name)
    return members


def _integer(text: str) -> int | LongInteger:
    digits = len(text) - text.startswith("-")
    return int(text) if digits <= MAX_INTEGER_DIGITS else LongInteger(digits=digits)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        shown = text if len(text) <= 20 else text[:19] + "…"
        raise BadJSON("the number {shown} is beyond a double's range", shown=shown)
    return number


def _refuse_constant(name: str) -> object:
    raise BadJSON("{name} is not a number of JSON", name=name)


def _refuse_lone_surrogates(value: object, source: str) -> None:
    if _SURROGATE.search(source) is None:
        return  # a lone surrogate can only come from an escape: the line itself is valid UTF-8
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise BadJSON("a lone surrogate: half of a \\ud83d\\ude00 pair is missing") from None


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_finite, parse_constant=_refuse_constant
)
