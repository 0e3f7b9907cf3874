"""Records: one format byte, the header's length, a JSON header, then the raw value.

Used for whatever the store keeps that is not an item's raw value: configs, trash, audit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from queues.errors import NewerFormat

_FORMAT = 1
_encoder = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False, allow_nan=False)


def encode(header: Mapping[str, Any], value: bytes = b"") -> bytes:
    """Return the record's bytes. Equal headers and values give equal bytes."""
    head = _encoder.encode(header).encode("utf-8", "surrogatepass")
    return b"".join((bytes([_FORMAT]), len(head).to_bytes(3, "big"), head, value))


def decode(record: bytes) -> tuple[dict[str, Any], bytes]:
    """Return (header, value); raise `NewerFormat` for a record of a later release."""
    if not record:
        raise ValueError("an empty record")
    if record[:1] != bytes([_FORMAT]):
        raise NewerFormat("A record in the store was written by a newer pqadmin; use that release.")
    end = 4 + int.from_bytes(record[1:4], "big")
    header: dict[str, Any] = json.loads(record[4:end].decode("utf-8", "surrogatepass"))
    return header, record[end:]


def unknown(header: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the fields of a header that this release does not know; they are written again as they were read."""
    if len(header) <= len(known) and header.keys() <= known:
        return {}
    return {name: value for name, value in header.items() if name not in known}
