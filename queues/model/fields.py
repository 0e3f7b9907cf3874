"""Fields of values: what a dotted path such as `customer.id` names in JSON or msgpack."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

_FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)
#: The bytes that begin a map or an array in msgpack.
_PACKED = frozenset((*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF))


def values_at(value: bytes, path: str) -> list[Any]:
    """Return what a dotted path names in a value; empty for no document.

    An array counts as all of its elements, and a number names one of them: `lines.sku`, `lines.0.sku`.
    """
    if not value:
        return []
    try:
        document = msgspec.msgpack.decode(value) if value[0] in _PACKED else msgspec.json.decode(value)
    except _FAILURES:
        return []
    return list(_at(document, path.split(".")))


def _at(found: Any, names: list[str]) -> Iterator[Any]:
    if isinstance(found, list):
        for each in found:
            yield from _at(each, names)
        if names and names[0].isascii() and names[0].isdigit() and int(names[0][:9]) < len(found):
            yield from _at(found[int(names[0])], names[1:])
    elif not names:
        yield found
    elif isinstance(found, dict) and names[0] in found:
        yield from _at(found[names[0]], names[1:])


def field_text(found: Any) -> str:
    """Return a value of a field as people type it: a text as it is, anything else as JSON."""
    if isinstance(found, str):
        return found
    return json.dumps(found, ensure_ascii=False, default=str, separators=(",", ":"))


def field_says(value: bytes, path: str, text: str, *, exact: bool) -> bool:
    """Say whether a field of a value is a text (`exact`), or contains it in either case."""
    # Most values have no such field; a key may be escaped.
    if path.rsplit(".", 1)[-1].encode("utf-8", "surrogatepass") not in value and b"\\" not in value:
        return False
    folded = text.casefold()
    try:
        texts = list(map(field_text, values_at(value, path)))
    except _FAILURES:  # nested too deeply to be written
        return False
    return any(found == text if exact else folded in found.casefold() for found in texts)
