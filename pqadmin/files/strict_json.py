"""JSON as an import takes it: exact or refused.

Whole numbers keep every digit. Refused: NaN, Infinity, numbers beyond a double's range, a name twice in one object,
lone surrogates, nesting deeper than Python follows. The source text of each member of the outermost object is kept,
so that a value can be stored as it was written.
"""

import json
import math
import re
from dataclasses import dataclass

from queues.errors import Worded, Words

#: Decimal digits. Longer integers are legal inside a value (only their text is kept) but convert in quadratic time.
MAX_INTEGER_DIGITS = 1_000

_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


class BadJSON(Worded):
    """The text is not JSON, or not the exact kind that an import takes; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of the outermost object: what it means and how it was written."""

    value: object
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LongInteger:
    """A whole number of so many digits that it is kept as text only."""

    digits: int


def parse_members(text: str, *, longest: int) -> dict[str, Member]:
    """Read the text as one JSON object; raise `BadJSON` saying what is wrong and where.

    In a text of more than `longest` characters, text and numbers are read, lists and objects are not: they take much
    longer, and other threads wait meanwhile.
    """
    try:
        nested = len(text) <= longest
        return (_plain_members(text) if nested else None) or _members(text, nested=nested)
    except json.JSONDecodeError as error:
        raise BadJSON("not JSON at character {at}: {what}", at=error.pos + 1, what=_plain(error.msg)) from None
    except RecursionError:
        raise BadJSON("nested too deeply") from None


def parse(text: str) -> object:
    """Read the text as one JSON value; raise `BadJSON` saying what is wrong and where."""
    try:
        value, end = _DECODER.raw_decode(text, _skip(text, 0))
    except json.JSONDecodeError as error:
        raise BadJSON("not JSON at character {at}: {what}", at=error.pos + 1, what=_plain(error.msg)) from None
    except RecursionError:
        raise BadJSON("nested too deeply") from None
    if _skip(text, end) != len(text):
        raise BadJSON("text after the JSON value at character {at}", at=end + 1)
    _refuse_lone_surrogates(value, text)
    return value


def _plain_members(text: str) -> dict[str, Member] | None:
    """Read the text in one go, which is faster; None where there is anything to say about it, or to keep."""
    try:
        found, end = _DECODER.raw_decode(text)
        if "\\" in text:
            _refuse_lone_surrogates(found, text)
    except (ValueError, BadJSON):
        return None
    if not isinstance(found, dict) or text[end:].strip(" \t\r\n"):
        return None
    if any(isinstance(value, dict | list) for value in found.values()) or "value_json" in found:
        return None  # what of these is stored is their source
    return {name: Member(value=value, source="") for name, value in found.items()}


def _members(text: str, *, nested: bool) -> dict[str, Member]:
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise BadJSON('not a JSON object: a line holds one object like {"value": "…", "priority": 5}')
    members: dict[str, Member] = {}
    at = _skip(text, at + 1)
    if text[at : at + 1] != "}":
        while True:
            if text[at : at + 1] != '"':
                raise json.JSONDecodeError("a name in double quotes is expected", text, at)
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                raise json.JSONDecodeError("':' is expected", text, at)
            start = _skip(text, at + 1)
            if not nested and text[start : start + 1] in ("[", "{"):
                raise BadJSON("a list or an object in a line of {size:,} characters is too large", size=len(text))
            value, at = _DECODER.raw_decode(text, start)
            if name in members:
                raise BadJSON("the name {name} is given twice in one object", name=json.dumps(name))
            _refuse_lone_surrogates(value, text[start:at])
            members[name] = Member(value=value, source=text[start:at])
            at = _skip(text, at)
            if text[at : at + 1] != ",":
                break
            at = _skip(text, at + 1)
        if text[at : at + 1] != "}":
            raise json.JSONDecodeError("',' or '}' is expected", text, at)
    end = _skip(text, at + 1)
    if end != len(text):
        raise json.JSONDecodeError("text after the object", text, end)
    return members


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _plain(message: str) -> str:
    plain = message[:1].lower() + message[1:]
    return _EXPECTED.get(plain, plain)


#: The most frequent errors of Python and of this module.
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
        Words("a name in double quotes is expected"),
        Words("':' is expected"),
        Words("',' or '}' is expected"),
        Words("text after the object"),
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
