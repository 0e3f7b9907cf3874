"""Values that are exported as text, and JSON that is harmless on a terminal.

A value is plain text when it is valid UTF-8 and nothing in it surprises: no control characters but tab and line
feed, no invisible direction marks, no byte order mark. Everything else is bytes and travels as base64.
"""

import json
import re

_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff"
_SURPRISE = re.compile(f"[{_CONTROL}{_INVISIBLE}]")
#: JSON escapes the C0 controls itself; these it would let through to a terminal.
_UNESCAPED = re.compile(f"[\x7f-\x9f{_INVISIBLE}]")

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

#: Verbs of several, and of one.
_OF_ONE = {"are": "is", "have": "has"}


def plain_text(value: bytes) -> str | None:
    """Return the bytes as text, or None when they are not plain text."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if _SURPRISE.search(text) else text


def items(count: int, what: str = "") -> str:
    """Return a number of items with a phrase, singular or plural: “2 items are done”, “1 item is done”."""
    several, _, rest = what.partition(" ")
    said = f"{_OF_ONE.get(several, several)} {rest}" if count == 1 else what
    return f"{'1 item' if count == 1 else f'{count:,} items'} {said}".rstrip()


def json_text(shape: object, *, indent: int | None = None) -> str:
    """Write the shape as JSON: integers exact, text readable, invisible characters escaped."""
    text = _encode(shape) if indent is None else json.dumps(shape, ensure_ascii=False, allow_nan=False, indent=indent)
    return _UNESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
