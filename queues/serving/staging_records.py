"""Staged requests and their results as records of the store: see `queues.serving.staging`.

A staged request holds requests of one process; its result lies in parts beside it. A result that is still there was
returned to no caller of a live process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from queues.errors import NewerFormat
from queues.items.stored_item import StoredItem, as_item, from_lease
from queues.keys.queue_keys import SINCE, QueueKeys, ready_elements, ready_suffix
from queues.kv.port import ReadTransaction, Transaction
from queues.model import records
from queues.model.attempt_log import LOG
from queues.model.config import Config
from queues.model.ids import to_ms
from queues.model.item import Item

#: Bytes of a request, and of one part of a result.
MAX_REQUEST = PART = records.MAX_VALUE_SIZE
#: Requests that are read at once, and parts of one result.
MAX_REQUESTS, _MAX_PARTS = 64, 200


class Take(Protocol):
    """A request to take something, a struct of msgspec."""

    @property
    def n(self) -> int:
        """Items at most."""

    @property
    def now_ms(self) -> int:
        """When it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRequest:
    """The requests of one process that the fulfiller is to execute."""

    key: bytes
    id: bytes
    ms: int
    takes: tuple[Take, ...]

    def by_clock(self, now_ms: int) -> "StagedRequest":
        """Return the request as if it were made now: the clock of the process that serves it decides."""
        takes: Any = self.takes
        return replace(self, takes=tuple(msgspec.structs.replace(take, now_ms=now_ms) for take in takes))


def ask(tr: Transaction, keys: QueueKeys, *, ms: int, request: bytes, record: bytes) -> None:
    """Write a request."""
    tr.use_reserve()
    tr.set(keys.requests.key(ms, request), record)


def encode_takes(takes: Sequence[Take]) -> tuple[bytes, int]:
    """Return a request's record, and how many of the takes are in it."""
    number = len(takes)
    while True:
        record = records.encode({"takes": msgspec.to_builtins(takes[:number])})
        if len(record) <= MAX_REQUEST or number == 1:
            return record, number
        number //= 2


def read_requests(tr: ReadTransaction, keys: QueueKeys, kinds: Any) -> list[StagedRequest]:
    """Return the first requests of these kinds; what a newer release asks for is left to it."""
    found = []
    for key, record in tr.get_range(*keys.requests.all, limit=MAX_REQUESTS).wait():
        ms, request = keys.requests.elements(key)
        try:
            header, _ = records.decode(record)
            takes = msgspec.convert(header["takes"], tuple[kinds, ...])
        except (NewerFormat, ValueError, KeyError, TypeError):  # msgspec's own errors are ValueErrors
            continue
        found.append(StagedRequest(key=key, id=request, ms=ms, takes=takes))
    return found


def answer(tr: Transaction, keys: QueueKeys, request: StagedRequest, answers: Sequence[Any]) -> None:
    """Replace a request by what it got, unless its process has given it up meanwhile."""
    tr.add_read_conflict_key(request.key)
    tr.clear(request.key)
    values: list[bytes] = []
    got = [[_got(one, values) for one in taken] for taken in answers]
    items = [one for taken in answers for one in taken if isinstance(one, Item) and one.attempt_records]
    logs = {"logs": {one.id: list(one.attempt_records) for one in items}} if items else {}
    record = records.encode({"answers": got, **logs}, b"".join(values))
    for n, begin in enumerate(range(0, len(record), PART)):
        tr.set(keys.results.key(request.ms, request.id, n), record[begin : begin + PART])


def collect(tr: Transaction, keys: QueueKeys, *, ms: int, request: bytes) -> bytes | None:
    """Read and remove the result of a request; it may be used once the removal is committed."""
    parts = tr.get_range(*keys.results.below(ms, request), limit=_MAX_PARTS).wait()
    for key, _ in parts:
        tr.clear(key)
    return b"".join(part for _, part in parts) or None


def decode_answers(record: bytes, takes: Sequence[Take], config: Config) -> list[Any]:
    """Return what each of the first takes got."""
    header, rest = records.decode(record)
    answers: list[Any] = []
    for got in header["answers"]:
        taken: list[Any] = []
        for what, size in got:
            taken.append(_read_got(what, rest[:size], config, header))
            rest = rest[size:]
        answers.append(taken)
    return answers[: len(takes)]


def popped(record: bytes, config: Config) -> list[Item]:
    """Return the items that were popped for a request, without those that were leased."""
    header, rest = records.decode(record)
    items = []
    for what, size in (one for got in header["answers"] for one in got):
        one = _read_got(what, rest[:size], config, header)
        rest = rest[size:]
        if isinstance(one, Item):
            items.append(one)
    return items


# What records hold


def _got(one: Item | StoredItem, values: list[bytes]) -> list[Any]:
    """Return what the header says of an item, [what it is, bytes]; put its bytes to the values."""
    if isinstance(one, Item):
        assert one.count is not None
        suffix = ready_suffix(one.priority, one.count, bytes.fromhex(one.id))
        values.append(one.raw)
        since = [] if one.ready_at in (None, one.pushed_at) else [to_ms(one.ready_at)]
        return [[suffix.hex(), one.attempts, *since], len(one.raw)]
    record = one.stored
    values.append(record)
    return [one.rand.hex(), len(record)]


def _read_got(what: Any, stored: bytes, config: Config, header: Mapping[str, Any]) -> Item | StoredItem:
    if isinstance(what, str):
        return from_lease(bytes.fromhex(what), stored)
    encoded, tried, *since = what
    suffix = bytes.fromhex(encoded)
    rand = ready_elements(suffix, fifo=config.fifo)[2]
    log = header.get("logs", {}).get(rand.hex())
    there = StoredItem(
        state="ready",
        rand=rand,
        generation=0,
        suffix=suffix,
        attempts=tried,
        value=stored,
        header=({LOG: log} if log else {}) | ({SINCE: since[0]} if since else {}),
    )
    return as_item(there, fifo=config.fifo, codec=config.values)
