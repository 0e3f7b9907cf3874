"""Cursor: an opaque position in a list of one queue, safe in an address.

A cursor is a position, not an item: it stays valid when the item that it was made from is taken.
"""

import base64
import binascii
import zlib
from typing import Literal

from queues.errors import BadCursor

End = Literal["min", "max"]
#: The list of a position: ready items from one end, items of another state, or results of a search.
List = Literal["min", "max", "delayed", "leased", "dead", "search", "finished"]
_LISTS: tuple[List, ...] = ("min", "max", "delayed", "leased", "dead", "search", "finished")
_VERSION = 1
#: Characters; keys of other programs have up to 10,000 bytes.
_MAX_LENGTH = 14_000


def encode(queue_id: int, where: List, suffix: bytes) -> str:
    """Return the cursor behind the item with this key suffix."""
    body = bytes([_VERSION, _LISTS.index(where)]) + queue_id.to_bytes(8, "big") + suffix
    return base64.urlsafe_b64encode(zlib.crc32(body).to_bytes(4, "big") + body).rstrip(b"=").decode()


def decode(cursor: str, queue_id: int, where: List) -> bytes:
    """Return the key suffix of a cursor of this queue and list. Raise `BadCursor` for any other."""
    try:
        if len(cursor) > _MAX_LENGTH:
            raise ValueError
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, TypeError, binascii.Error):
        raise BadCursor("This page address is damaged; start again from the first page.") from None
    body = raw[4:]
    if len(body) < 11 or raw[:4] != zlib.crc32(body).to_bytes(4, "big") or body[0] != _VERSION:
        raise BadCursor("This page address is damaged; start again from the first page.")
    if int.from_bytes(body[2:10], "big") != queue_id:
        raise BadCursor("This page address belongs to another queue; start again from the first page.")
    if body[1] != _LISTS.index(where):
        if body[1] < 2 and where in _LISTS[:2]:
            raise BadCursor("This page address counts from the other end; start again from the first page.")
        raise BadCursor("This page address belongs to another list; start again from the first page.")
    return body[10:]
