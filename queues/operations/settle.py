"""Settling leases: acknowledge, release and extend, those of many callers in one transaction.

A batch first issues the reads of all its requests, so that they travel together, and then writes. So no two requests
of one batch are about the same item.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from queues.errors import BadTime, BadToken, BadValue, QueueUnreadable, StaleLease, display_name
from queues.items import finished, state_machine
from queues.items.counters import CounterDelta
from queues.items.lease_expiry import ExpiredRead
from queues.items.stored_item import StoredItem, as_item, from_lease, sound
from queues.keys.queue_keys import NONCE_SIZE, OUTSIDE, QueueKeys
from queues.kv.port import ReadTransaction, Refused, Transaction
from queues.model import attempt_log, ids, records
from queues.model.config import MAX_REASON, Config, check_text
from queues.model.duration import LEASE, Duration, seconds_of
from queues.model.item import Item
from queues.model.moment import due_ms, either
from queues.model.records import UNREADABLE, reading, unreadable
from queues.model.tuples import pack_bytes, pack_number
from queues.operations.open_queue import OpenQueue, Request, check_number, executes

#: Why an attached queue has no leases.
NO_LEASES = "other programs ignore leases."
#: Characters of what is no token that are shown: a token has 57.
_SHOWN = 80

#: A lease by the item's id and the lease's nonce.
LeaseKey = tuple[bytes, bytes]


class AckRequest(Request[list[LeaseKey]], frozen=True, gc=False):
    """Acknowledge leases; the answer is the list of those that are stale."""

    leases: tuple[LeaseKey, ...]
    #: A lease of an item that is nowhere in the queue is stale, too.
    must_hold: bool = False


class ReleaseRequest(Request[Item], frozen=True, gc=False):
    """Give a leased item back; the answer is the item. Raises `StaleLease`, `QueueUnreadable`."""

    lease: LeaseKey
    #: When it becomes ready, in milliseconds; None: at once, at its place.
    due_ms: int | None
    reason: str
    count_attempt: bool
    now_ms: int
    traceback: str = ""


class ExtendRequest(Request[StoredItem], frozen=True, gc=False):
    """Let a lease end at another time; the answer is the leased item as it is stored. Raises `StaleLease`."""

    lease: LeaseKey
    expires_ms: int
    now_ms: int


SettleRequest = AckRequest | ReleaseRequest | ExtendRequest


# Requests; a lease is given as such or by its token


def ack_request(queue: OpenQueue, leases: Iterable[object], *, must_hold: bool = False) -> AckRequest:
    """Return the request to acknowledge at most 1,000 leases; raise `NotForAttached`, `BadToken`, `BadLimit`."""
    if queue.foreign is not None:
        queue.check_own(NO_LEASES)
    held = dict.fromkeys([_held(queue, lease) for lease in leases])
    if len(held) > 1:
        check_number(len(held))
    return AckRequest(queue.id, tuple(held), must_hold)


def settled(queue: OpenQueue, leases: Iterable[LeaseKey]) -> None:
    """Note that this process holds these leases no longer."""
    held = queue.consumption.held
    for _, nonce in leases:
        held.pop(nonce, None)


def stale_tokens(stale: list[LeaseKey], leases: Iterable[object]) -> list[str]:
    """Return the tokens of stale leases as they were given."""
    tokens = {parse_lease(lease): _token(lease) for lease in leases} if stale else {}
    return [tokens[key] for key in stale]


def release_request(
    queue: OpenQueue, lease: object, *, delay: Duration | None, reason: str, traceback: str, count_attempt: bool
) -> ReleaseRequest:
    """Return the request to release a lease; raise `NotForAttached`, `BadToken`, `BadTime`, `BadValue`."""
    queue.check_own(NO_LEASES)
    key, when, seconds = _held(queue, lease), either(delay, None), queue.context.clock()
    due = None if when is None else due_ms(when, seconds)
    if not isinstance(reason, str):
        raise BadValue("A reason is text, not {type}.", type=type(reason).__name__)
    if not isinstance(traceback, str):
        raise BadValue("A traceback is text, not {type}.", type=type(traceback).__name__)
    why, now_ms = check_text(reason, MAX_REASON), int(seconds * 1000)
    return ReleaseRequest(queue.id, key, due, why, count_attempt, now_ms, attempt_log.cut(traceback))


def extend_request(queue: OpenQueue, lease: object, seconds: Duration) -> ExtendRequest:
    """Return the request to extend a lease; raise `NotForAttached`, `BadToken`, `BadTime`."""
    queue.check_own(NO_LEASES)
    return ExtendRequest(queue.id, _held(queue, lease), expires_ms_of(queue, seconds), queue.context.clock.now_ms())


def expires_ms_of(queue: OpenQueue, seconds: Duration) -> int:
    """Return when a lease ends that begins now, in milliseconds; raise `BadTime`."""
    held = seconds_of(seconds, LEASE, above_zero=True)
    expires_ms = (queue.context.clock() + held) * 1000
    if expires_ms > ids.LAST_MS:  # infinity too, by overflow
        raise BadTime("A lease ends before the year 10000.")
    return math.ceil(expires_ms)


def _token(lease: object) -> str:
    token = getattr(lease, "token", lease)
    if not isinstance(token, str):
        raise BadToken("A lease or its token is needed here, not {type}.", type=type(token).__name__)
    return token


def _held(queue: OpenQueue, lease: object) -> LeaseKey:
    """Return (rand, nonce) of a lease of this queue; raise `BadToken`. A token alone does not tell its queue."""
    binding = getattr(lease, "_binding", None)  # not `binding_of`: acknowledgements are many
    if binding is not None and binding.queue_id not in (None, queue.id):
        raise BadToken("This is a lease of another queue than “{queue}”.", queue=display_name(queue.config.name))
    return parse_lease(lease)


def parse_lease(lease: object) -> LeaseKey:
    """Return (rand, nonce) of a lease; raise `BadToken`."""
    token = _token(lease)
    item_id, _, rest = token.partition("-")
    try:
        rand, nonce = bytes.fromhex(item_id), bytes.fromhex(rest)
    except ValueError:
        rand = nonce = b""
    if len(rand) != ids.SIZE or rand.hex() != item_id or len(nonce) != NONCE_SIZE:
        raise BadToken("“{token}” is not the token of a lease.", token=display_name(token[:_SHOWN]))
    return rand, nonce


def stale() -> StaleLease:
    """Build the error of an acknowledgement that comes too late."""
    return StaleLease("This lease is over: it ended before it was acknowledged, so the item may be worked on again.")


# Executing


class HeldRead:
    """A read of the lease of this nonce, issued and not yet waited for."""

    def __init__(self, tr: ReadTransaction, keys: QueueKeys, rand: bytes, nonce: bytes) -> None:
        self._rand = rand
        self._nonce = nonce
        self._read = tr.get(keys.leases.key(rand))

    def expires_ms(self, config: Config) -> int | None:
        """Return when the lease ends; None when it is over. All that an acknowledgement needs of the record.

        Raises `QueueUnreadable`.
        """
        record = self._read.wait()
        if record is None:
            return None
        try:
            header = records.decode(record)[0]
            expires_ms: int = header["expires"]
            if type(expires_ms) is not int:
                raise TypeError("a lease without an end")
            return expires_ms if bytes.fromhex(header["nonce"]) == self._nonce else None
        except UNREADABLE as error:
            raise unreadable(config.name, error) from error

    def wait(self, config: Config) -> StoredItem:
        """Return the leased item; raise `StaleLease` when the lease is over, and `QueueUnreadable`."""
        record = self._read.wait()
        with reading(config.name):
            there = None if record is None else from_lease(self._rand, record)
            if there is not None and there.nonce == self._nonce:
                as_item(there, fifo=config.fifo, codec=config.values)  # what is written of it can be read again
                return sound(there, config)
        raise StaleLease("This lease is over: it ended before, and the item may have gone to another worker.")


@executes(AckRequest, ReleaseRequest, ExtendRequest)
def settle(queue: OpenQueue, tr: Transaction, requests: Sequence[SettleRequest]) -> Sequence[Any]:
    """Settle the leases of the first requests that are about different items, in their order."""
    begun = [[HeldRead(tr, queue.keys, *lease) for lease in _leases_of(request)] for request in _together(requests)]
    record = tr.get(queue.config_key).wait()
    guess = queue.guess
    config = guess[1] if record == guess[0] else queue.settle(record)
    delta = CounterDelta(queue.keys, wake=False)
    answers: list[Any] = []
    acknowledged: list[tuple[bytes, int]] = []
    kept: list[StoredItem] = []
    for request, reads in zip(requests, begun, strict=False):
        try:
            if isinstance(request, AckRequest):
                answers.append(_ack(tr, queue, config, request, reads, delta, acknowledged, kept))
            else:
                answers.append(_FINISH[type(request)](tr, queue, config, request, reads, delta))
        except (StaleLease, QueueUnreadable) as error:  # by reading, before anything is written
            answers.append(Refused(error))
    if acknowledged:
        _remove(tr, queue.keys, acknowledged, delta)
    if config.keep_finished:
        # The time of this attempt of the transaction: it decides nothing.
        finished.keep(tr, queue.context.keyspace, config, kept, delta, now_ms=queue.context.clock.now_ms())
    if not delta.empty:
        delta.apply(tr)
    return answers


def _together(requests: Sequence[SettleRequest]) -> Sequence[SettleRequest]:
    if len(requests) == 1:
        return requests
    about: set[bytes] = set()
    for n, request in enumerate(requests):
        rands = [rand for rand, _ in _leases_of(request)]
        if not about.isdisjoint(rands):
            return requests[:n]
        about.update(rands)
    return requests


def _leases_of(request: SettleRequest) -> Sequence[LeaseKey]:
    return request.leases if isinstance(request, AckRequest) else (request.lease,)


def _ack(
    tr: Transaction,
    queue: OpenQueue,
    config: Config,
    request: AckRequest,
    reads: list[HeldRead],
    delta: CounterDelta,
    acknowledged: list[tuple[bytes, int]],
    kept: list[StoredItem],
) -> list[LeaseKey]:
    """Acknowledge the leases of a request, and return those that are stale.

    Ids and ends of leases are added to `acknowledged`; items of a queue that keeps finished ones to `kept`.
    """
    found = [(lease, read.expires_ms(config)) for lease, read in zip(request.leases, reads, strict=True)]
    held = [(lease[0], expires_ms) for lease, expires_ms in found if expires_ms is not None]
    items: list[StoredItem] = []
    if config.keep_finished:
        items = [read.wait(config) for read, (_, ends) in zip(reads, found, strict=True) if ends is not None]
    if len(held) == len(found):
        acknowledged += held
        kept += items
        return []
    over = [lease for lease, expires_ms in found if expires_ms is None]
    acked = {rand for rand, _ in held}
    # A lease that is over counts as acknowledged before if its item is nowhere in this queue.
    looks = [(lease, ExpiredRead(tr, queue.keys, config, *lease)) for lease in over if lease[0] not in acked]
    there_still = [(lease, look) for lease, look in looks if request.must_hold or look.is_there()]
    with reading(config.name):
        expired = [(look, there) for _, look in there_still if (there := look.item()) is not None]
    acknowledged += held  # all is read: nothing is refused from here on
    kept += items
    for look, there in expired:
        look.take(there, delta)
        kept.append(there)
        acked.add(there.rand)
    return [lease for lease, _ in there_still if lease[0] not in acked]


def _remove(tr: Transaction, keys: QueueKeys, leases: Sequence[tuple[bytes, int]], delta: CounterDelta) -> None:
    """Remove leased items for good, by id and end of lease: the packed form of transitions, in one call."""
    held, index, expiries = keys.leases.prefix, keys.index("leased").prefix, keys.expiries.prefix
    tr.use_reserve()
    gone: list[bytes] = []
    for rand, expires_ms in leases:
        packed_id = pack_bytes(rand)
        gone += (held + packed_id, index + packed_id, expiries + pack_number(expires_ms) + packed_id)
    tr.clear_many(gone)
    delta.state(OUTSIDE, "leased", "out", len(leases))
    delta.traffic("ack", len(leases))


def _release(
    tr: Transaction,
    queue: OpenQueue,
    config: Config,
    request: ReleaseRequest,
    reads: list[HeldRead],
    delta: CounterDelta,
) -> Item:
    there, counts = reads[0].wait(config), request.count_attempt
    now_ms, reason = request.now_ms, request.reason
    if counts:
        tried = state_machine.with_attempt_logged(
            there, config, now_ms=now_ms, error=reason, traceback=request.traceback
        )
    else:
        tried = there = replace(there, attempts=there.attempts - 1)
    if request.due_ms is None or (counts and state_machine.is_last(there, config)):
        after = state_machine.given_back(tried, config, now_ms=now_ms, reason=reason, dies=counts)
    else:
        after = state_machine.delayed_until(tried, config, request.due_ms, reason=reason)
    tr.use_reserve()
    delta.traffic("release")
    state_machine.change(tr, queue.keys, config, there, after, delta, now_ms=request.now_ms)
    return as_item(after, fifo=config.fifo, codec=config.values)


def _extend(
    tr: Transaction,
    queue: OpenQueue,
    config: Config,
    request: ExtendRequest,
    reads: list[HeldRead],
    delta: CounterDelta,
) -> StoredItem:
    there = reads[0].wait(config)
    after = state_machine.extended(there, request.expires_ms)
    tr.use_reserve()
    delta.traffic("extend")
    state_machine.change(tr, queue.keys, config, there, after, delta, now_ms=request.now_ms)
    return after


_FINISH: dict[type, Callable[..., Any]] = {ReleaseRequest: _release, ExtendRequest: _extend}
