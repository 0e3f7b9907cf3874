"""Requests that came whole, written as nearly all programs write them: one grammar without room for interpretation.

What differs from it is left to Twisted's parser: chunks, several fields of one name, folded lines, lone line feeds.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

#: How these requests begin.
START = b"POST /api/v1/queues/"
#: Bytes of a head, of which Twisted takes more; digits of a length.
_LONGEST_HEAD, _MOST_DIGITS = 8_000, 18
#: The fields that differ between the requests of one program.
_VARYING = re.compile(rb"\r\n(content-length|idempotency-key): ?([!-~]+)(?=\r\n|\Z)", re.IGNORECASE)
_FIRST = re.compile(rb"POST ([!-~]+) HTTP/1\.1")
_FIELD = re.compile(rb"([A-Za-z0-9-]+): ?([!-~](?:[ !-~]*[!-~])?)")
#: Fields with which more must be done than to hand them on, or that are here only when they are odd.
_SPECIAL = {
    b"connection",
    b"content-length",
    b"cookie",
    b"expect",
    b"idempotency-key",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}


class WholeRequest(NamedTuple):
    """A request; its head without the varying fields, so that a program's requests have few different ones."""

    head: bytes
    #: The digits of Content-Length.
    length: str | None
    #: The Idempotency-Key.
    key: str | None
    body: bytes


class Answer(NamedTuple):
    """A whole answer, with its length among the headers if it has a body."""

    status: int
    headers: Iterable[tuple[bytes, bytes]]
    body: bytes


def whole_request(data: bytes) -> WholeRequest | None:
    """Return the one request that these bytes are, as far as its length goes; None: it is not one."""
    end = data.find(b"\r\n\r\n") if data.startswith(START) else -1
    if not 0 < end <= _LONGEST_HEAD:
        return None
    head, length, key = data[:end], None, None
    for name, value in _VARYING.findall(head):
        if name[:1] in b"Cc":
            if length is not None or not value.isdigit() or len(value) > _MOST_DIGITS:
                return None
            length = value.decode("ascii")
        elif key is None:
            key = value.decode("ascii")
        else:
            return None
    if len(data) - end - 4 != int(length or 0):
        return None
    return WholeRequest(_VARYING.sub(b"", head), length, key, data[end + 4 :])


def fields_of(head: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]] | None:
    """Return the target of a head and its fields, their names in lower case; None: it is not of the grammar."""
    first, *lines = head.split(b"\r\n")
    begun = _FIRST.fullmatch(first)
    fields: dict[bytes, bytes] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            return None
        name, value = field[1].lower(), field[2]
        if name in fields or (name in _SPECIAL and (name, value.lower()) != (b"connection", b"keep-alive")):
            return None
        fields[name] = value
    if begun is None or b"host" not in fields:
        return None
    return begun[1], list(fields.items())
