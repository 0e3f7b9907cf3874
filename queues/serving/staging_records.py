"""What processes ask each other for and what they get, as it lies in the store: see `queues.serving.staging`.

A request holds the takes of one process, and what it got lies in parts beside it. Both go with the process that made
the request: a result that nobody has taken was certainly not handed to anybody whose process is alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from queues.errors import NewerFormat
from queues.items import leased, ready
from queues.items.stored_item import StoredItem, from_lease
from queues.keys.queue_keys import QueueKeys
from queues.keys.suffix import ready_suffix
from queues.kv.port import ReadTransaction, Transaction
from queues.model import records
from queues.model.config import Config
from queues.model.item import Item
from queues.serving.take_request import LATE_MS, Take, Taken

#: Bytes of a request, and of one part of a result.
MAX_REQUEST = PART = records.MAX_VALUE_SIZE
#: Requests that are read at once, and parts of one result.
MAX_REQUESTS, _MAX_PARTS = 64, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a process asks for."""

    key: bytes
    id: bytes
    ms: int
    takes: tuple[Take, ...]

    def by_clock(self, now_ms: int) -> Request:
        """Return the request as if it were made now, by the clock of whoever serves it: nobody is served, or sent
        away because of a pause, by the clock of another process."""
        takes = tuple(
            take._replace(now_ms=now_ms, late_ms=None if take.late_ms is None else now_ms - LATE_MS)
            for take in self.takes
        )
        return replace(self, takes=takes)


def ask(tr: Transaction, keys: QueueKeys, *, ms: int, request: bytes, record: bytes) -> None:
    """Write a request."""
    tr.use_reserve()
    tr.set(keys.request(ms, request), record)


def encode_takes(takes: Sequence[Take]) -> tuple[bytes, int]:
    """Return a request's record, and how many of the takes are in it."""
    number = len(takes)
    while True:
        record = records.encode({"takes": [_take(take) for take in takes[:number]]})
        if len(record) <= MAX_REQUEST or number == 1:
            return record, number
        number //= 2


def read_requests(tr: ReadTransaction, keys: QueueKeys) -> list[Request]:
    """Return the first requests; what a newer release asks for is left to it."""
    found = []
    for key, record in tr.get_range(*keys.requests(), limit=MAX_REQUESTS).wait():
        ms, request = keys.request_of(key)
        try:
            header, _ = records.decode(record)
            takes = tuple(_read_take(*fields) for fields in header["takes"])
        except (NewerFormat, ValueError, KeyError, TypeError):
            continue
        found.append(Request(key=key, id=request, ms=ms, takes=takes))
    return found


def answer(tr: Transaction, keys: QueueKeys, request: Request, answers: Sequence[Taken]) -> None:
    """Replace a request by what it got, unless its process has given it up meanwhile."""
    tr.add_read_conflict_key(request.key)
    tr.clear(request.key)
    values: list[bytes] = []
    got = [None if taken is None else [_got(one, values) for one in taken] for taken in answers]
    record = records.encode({"answers": got}, b"".join(values))
    for n, begin in enumerate(range(0, len(record), PART)):
        tr.set(keys.result(request.ms, request.id, n), record[begin : begin + PART])


def collect(tr: Transaction, keys: QueueKeys, *, ms: int, request: bytes) -> bytes | None:
    """Take what a request got; whoever does not commit this has not got it."""
    parts = tr.get_range(*keys.result_parts(ms, request), limit=_MAX_PARTS).wait()
    for key, _ in parts:
        tr.clear(key)
    return b"".join(part for _, part in parts) or None


def decode_answers(record: bytes, takes: Sequence[Take], config: Config) -> list[Taken]:
    """Return what each of the first takes got."""
    header, rest = records.decode(record)
    answers: list[Taken] = []
    for got in header["answers"]:
        if got is None:
            answers.append(None)
            continue
        taken: list[Any] = []
        for what, size in got:
            taken.append(_read_got(what, rest[:size], config))
            rest = rest[size:]
        answers.append(taken)
    return answers[: len(takes)]


def popped(record: bytes, config: Config) -> list[Item]:
    """Return the items that were popped for a request, without those that were leased."""
    header, rest = records.decode(record)
    items = []
    for what, size in (one for got in header["answers"] if got is not None for one in got):
        one = _read_got(what, rest[:size], config)
        rest = rest[size:]
        if isinstance(one, Item):
            items.append(one)
    return items


# What records hold


def _take(take: Take) -> list[Any]:
    terms = take.terms
    leasing = None if terms is None else [terms.now_ms, terms.expires_ms, terms.worker, b"".join(terms.nonces).hex()]
    return [take.n, take.end, take.now_ms, take.late_ms, leasing]


def _read_take(n: int, end: Any, now_ms: int, late_ms: int | None, leasing: list[Any] | None) -> Take:
    terms = None
    if leasing is not None:
        leased_ms, expires_ms, worker, nonces = leasing[0], leasing[1], leasing[2], bytes.fromhex(leasing[3])
        size = len(nonces) // n
        split = tuple(nonces[at : at + size] for at in range(0, len(nonces), size))
        terms = leased.Terms(now_ms=leased_ms, expires_ms=expires_ms, worker=worker, nonces=split)
    return Take(n=n, end=end, now_ms=now_ms, late_ms=late_ms, terms=terms)


def _got(one: Item | StoredItem, values: list[bytes]) -> list[Any]:
    """Return what the header says of an item, [what it is, bytes]; put its bytes to the values."""
    if isinstance(one, Item):
        assert one.count is not None
        suffix = ready_suffix(one.priority, one.count, bytes.fromhex(one.id))
        values.append(one.value)
        return [[suffix.hex(), one.attempts], len(one.value)]
    record = one.stored
    values.append(record)
    return [one.rand.hex(), len(record)]


def _read_got(what: Any, stored: bytes, config: Config) -> Item | StoredItem:
    if isinstance(what, str):
        return from_lease(bytes.fromhex(what), stored)
    suffix, attempts = what
    return ready.as_item(ready.Entry(0, bytes.fromhex(suffix), b"", stored, attempts), config)
