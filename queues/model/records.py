"""Records: a format byte, the header's length, a JSON header, the raw value.

Everything in the store but raw values of items is a record: configs, trash, audit.
"""

import json
import logging
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from queues.errors import NewerFormat, QueueError, QueueUnreadable, StoreError, Worded, Words

log = logging.getLogger("queues.background.sweeper")

#: The largest value in bytes: a record around it stays below FoundationDB's limit of 100,000.
MAX_VALUE_SIZE = 90_000
#: Exceptions that decoding raises.
UNREADABLE = (
    NewerFormat,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)
#: Receives what was skipped, and why.
Tell = Callable[[str, Exception], None]


def why(error: Exception) -> Words:
    """Return why something cannot be read, for a person."""
    if isinstance(error, Worded):
        return error.words
    return Words("Its bytes are damaged ({kind}).", kind=type(error).__name__)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn errors of decoding inside this block into `QueueUnreadable`; other errors pass."""
    try:
        yield
    except UNREADABLE as error:
        if (other := unreadable(name, error)) is error:
            raise
        raise other from error


def unreadable(name: str, error: Exception) -> Exception:
    """Return `QueueUnreadable` for an error of decoding, and any other error as it is."""
    if isinstance(error, QueueError | StoreError) and not isinstance(error, NewerFormat):
        return error
    return QueueUnreadable(name, why(error))


def warn(what: str, error: Exception) -> None:
    """Log what was skipped."""
    log.warning("%s is left alone: %s: %s", what, type(error).__name__, error)


_FORMAT = 1
_decode_json = msgspec.json.Decoder().decode
_encode_json = msgspec.json.Encoder(order="sorted").encode
_encode_text = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode


def encode(header: Mapping[str, Any], value: bytes = b"") -> bytes:
    """Return the record's bytes, equal for equal headers and values."""
    try:
        head = _encode_json(header)
    except (UnicodeEncodeError, TypeError):  # text that is no Unicode, or of a class of its own
        head = _encode_text(header).encode("utf-8", "surrogatepass")
    return b"".join((bytes([_FORMAT]), len(head).to_bytes(3, "big"), head, value))


def decode(record: bytes) -> tuple[dict[str, Any], bytes]:
    """Return (header, value); raise `NewerFormat` for a record of a later release."""
    if not record:
        raise ValueError("an empty record")
    if record[:1] != bytes([_FORMAT]):
        raise NewerFormat("A record in the store was written by a newer pqadmin; use that release.")
    end = behind_header(record)
    try:
        header: dict[str, Any] = _decode_json(record[4:end])
    except (msgspec.DecodeError, UnicodeDecodeError):  # text that is no Unicode, or a damaged record
        header = json.loads(record[4:end].decode("utf-8", "surrogatepass"))
    return header, record[end:]


def behind_header(stored: bytes, begin: int = 0) -> int:
    """Return where the value of a record begins that begins at `begin`."""
    return begin + 4 + int.from_bytes(stored[begin + 1 : begin + 4], "big")


def unknown(header: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the header's unknown fields, which are written again as they were read."""
    if len(header) <= len(known) and header.keys() <= known:
        return {}
    return {name: value for name, value in header.items() if name not in known}
