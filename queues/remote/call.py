"""Call of the HTTP API: method, path, query, body and key, and the request that sends it."""

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import httpx

from queues.errors import ItemNotFound, JobNotFound, QueueNotFound, RequestRefused, TrashNotFound

#: Seconds to connect, and to wait for an answer beside the time that the call itself may take.
CONNECT, ANSWER = 5.0, 30.0
#: Seconds that one try has at least, however little time is left.
LEAST = 1.0
#: Characters of a part of a path, and parts that are resolved as folders.
_LONGEST_PART, _DOTS = 1_000, frozenset({".", ".."})


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of the API."""

    method: str
    #: Parts of the path behind `/api/v1`.
    path: Sequence[str]
    query: Mapping[str, Any] = field(default_factory=dict)
    #: A body in JSON.
    body: Any = None
    #: A body of bytes.
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Idempotency key; empty where a repetition changes nothing.
    key: str = ""
    #: Seconds for which the server may wait for an item.
    wait: float = 0.0

    @classmethod
    def writing(cls, method: str, *path: str, **rest: Any) -> "Call":
        """Return a call that changes something, with a new key."""
        return cls(method=method, path=path, key=secrets.token_hex(16), **rest)

    def request(self, base: str, common: Mapping[str, str], wait: float, left: float) -> httpx.Request:
        """Return a request that the server lets wait for an item and answers within the seconds left."""
        headers, content = {**common, **self.headers}, self.content
        if self.body is not None:
            content = json.dumps(self.body).encode()
            headers["Content-Type"] = "application/json"
        if self.key:
            headers["Idempotency-Key"] = self.key
        url = parsed_url(base + "/".join(map(_segment, self.path, ("", *self.path))))
        query = {**self.query, "wait": f"{wait:.3f}"} if self.wait else self.query
        left = max(LEAST, left)
        least = min(ANSWER, left)
        return httpx.Request(
            self.method,
            url,
            params={name: value for name, value in query.items() if value is not None} or None,
            headers=headers,
            content=content,
            extensions={
                "timeout": {
                    "connect": min(CONNECT, left),
                    "read": min(ANSWER + wait, left),
                    "write": least,
                    "pool": None,
                }
            },
        )


@lru_cache(maxsize=1_000)
def parsed_url(address: str) -> httpx.URL:
    """Return an address in the form of requests."""
    return httpx.URL(address)


def _segment(part: str, before: str) -> str:
    """Return a part of a path as it is sent. Raise what a server answers for a name that no address has."""
    if 0 < len(part) <= _LONGEST_PART and part not in _DOTS and "/" not in part:
        with suppress(UnicodeEncodeError):
            return quote(part, safe="")
    if before == "queues":
        raise QueueNotFound(part)
    if before in ("items", "finished"):
        raise ItemNotFound("The item is not in the queue: it was taken, or was never there.")
    if before == "jobs":
        raise JobNotFound("No bulk job has this id; its time may have run out.")
    if before == "undo":
        raise TrashNotFound("This is no id of anything in the trash.")
    raise RequestRefused("No address holds {part}.", part=f"{part!r:.80}")
