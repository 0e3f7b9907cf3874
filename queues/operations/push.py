"""Pushes: items that arrive, at once or delayed. What is ready at once goes in together, in the order of the calls."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from operator import add, attrgetter, itemgetter
from typing import Any, TypeVar, cast

from queues.errors import BadTime, BadValue, QueueClosed, QueueFull, TooLarge, ValueTooLarge, Worded, Words
from queues.items import ready, state_machine
from queues.items.counters import CounterDelta, admit
from queues.items.equal_ids import taken
from queues.items.stored_item import as_item
from queues.keys.queue_keys import QueueKeys, place, ready_suffix
from queues.kv.port import Refused, Transaction
from queues.model.bands import count_bands
from queues.model.codec import Codec, encoded
from queues.model.config import Config
from queues.model.item import Item, ready_items
from queues.model.moment import Moment, When, check_when, due_ms
from queues.model.priority import Priority, normalize
from queues.model.records import MAX_VALUE_SIZE
from queues.model.tuples import pack_ids, pack_numbers, pack_priorities
from queues.operations.open_queue import OpenQueue, Request, executes

T = TypeVar("T")

#: Bytes of values of one batch; one push alone may have more.
BATCH_BYTES = 1_000_000
#: Whole numbers of less magnitude are priorities of an int queue as they are.
_SMALL = 1 << 63

_ITEM = Words("An item is a value, a priority and at most one delay or due time.")

Values = Sequence[tuple[bytes, Priority | None]]


class PushRequest(Request[Item], frozen=True, gc=False):
    """Add one item that is ready at once; the answer is the item."""

    value: bytes
    priority: Priority | None
    #: Empty: chosen when it is executed.
    id: bytes = b""


class PushManyRequest(Request[list[Item]], frozen=True, gc=False):
    """Add items as one; the answer is their list."""

    values: tuple[tuple[bytes, Priority | None], ...]
    ids: tuple[bytes, ...]
    #: When each is due, in milliseconds; None: at once. Empty where all are ready at once.
    due_ms: tuple[int | None, ...] = ()
    now_ms: int = 0


def push_request(queue: OpenQueue, value: Any, priority: Priority) -> PushRequest:
    """Return the request to push one item; what most pushes are is checked in place, because a call costs more."""
    config = queue.guess[1]
    if config.kind != "priority":
        queue.check_kind("priority", "push", "enqueue")
    if config.codec != "bytes" or type(value) is not bytes or len(value) > MAX_VALUE_SIZE:
        value = encoded(value, config.values)
    if type(priority) is not int or config.priority_type != "int" or not -_SMALL < priority < _SMALL:
        priority = normalize(priority, config.priority_type)
    return PushRequest(queue.id, value, priority)


def push_many_request(
    queue: OpenQueue,
    items: Iterable[tuple[Any, Priority] | tuple[Any, Priority, When | None]],
    common: Moment | None,
) -> PushManyRequest:
    """Return the request to push items, each when it says so, else `common`; raise what is wrong with one."""
    queue.check_kind("priority", "push", "enqueue")
    config, items = queue.config, list(items)
    kind = config.priority_type
    pairs = {*map(type, items)} == {tuple} and {*map(len, cast(Sequence[tuple[Any, ...]], items))} == {2}
    if pairs and config.codec == "bytes" and _are_plain(kind, *zip(*items, strict=True)):
        return _request(queue, cast(Values, items), common)

    def check(item: Any) -> tuple[bytes, Priority, Moment | None]:
        if not isinstance(item, tuple | list) or len(item) < 2:
            raise BadValue(_ITEM)
        value, priority, *when = item
        return encoded(value, config.values), normalize(priority, kind), _own_when(when) if when else common

    checked = each(items, check)
    return _request(queue, [found[:2] for found in checked], common, [found[2] for found in checked])


def enqueue_many_request(queue: OpenQueue, values: Iterable[Any], when: Moment | None) -> PushManyRequest:
    """Return the request to add values at the tail; raise what is wrong with one."""
    queue.check_kind("fifo", "enqueue", "push")
    config = queue.config
    return _request(queue, each(values, lambda value: (encoded(value, config.values), None)), when)


def each(items: Iterable[Any], check: Callable[[Any], T]) -> list[T]:
    """Return what a check makes of each item; an error tells the `index` of the one that it refuses."""
    found: list[T] = []
    try:
        for item in items:
            found.append(check(item))  # noqa: PERF401 # as many as were good before an error
    except Worded as error:
        error.index = len(found)
        raise
    return found


def _are_plain(kind: str, values: Sequence[Any], priorities: Sequence[Any]) -> bool:
    """Say whether these may go into a queue of whole numbers as they are, as almost all do."""
    return (
        kind == "int"
        and {*map(type, values)} == {bytes}
        and {*map(type, priorities)} == {int}
        and max(map(len, values)) <= MAX_VALUE_SIZE
        and min(priorities) > -_SMALL
        and max(priorities) < _SMALL
    )


def _own_when(when: Sequence[object]) -> Moment | None:
    if len(when) > 1:
        raise BadTime(_ITEM)
    return check_when(when[0])


def _request(
    queue: OpenQueue, values: Values, common: Moment | None, whens: Sequence[Moment | None] = ()
) -> PushManyRequest:
    """Return the request to push checked values, at a common time or each at its own; raise what is wrong with one."""
    if len(values) > ready.MAX_ITEMS or sum(map(len, map(itemgetter(0), values))) > ready.MAX_BYTES:
        raise TooLarge("One transaction pushes at most 1,000 items and 5 MB; push them in parts.")
    ids = tuple(queue.context.id_generator.new_ids(len(values))) if values else ()
    if not any(when is not None for when in whens or [common]):
        return PushManyRequest(queue.id, tuple(values), ids)
    queue.check_own("its items cannot be delayed, as other programs would take them before.")
    seconds = queue.context.clock()
    of_all = None if common is None else due_ms(common, seconds)

    def due(when: Moment | None) -> int | None:
        return of_all if when is common else None if when is None else due_ms(when, seconds)

    dues = tuple(each(whens, due)) if whens else (of_all,) * len(values)
    return PushManyRequest(queue.id, tuple(values), ids, dues, int(seconds * 1000))


# Executing

_value, _priority, _id = map(attrgetter, ("value", "priority", "id"))


def with_ids(
    queue: OpenQueue, requests: Sequence[PushRequest | PushManyRequest]
) -> Sequence[PushRequest | PushManyRequest]:
    """Return the requests with new ids for those that have none."""
    if {*map(type, requests)} == {PushRequest} and not any(map(_id, requests)):  # as are most
        new = queue.context.id_generator.new_ids(len(requests))
        return list(map(PushRequest, repeat(queue.id), map(_value, requests), map(_priority, requests), new))
    number = [type(request) is PushRequest and not request.id for request in requests].count(True)
    ids = iter(queue.context.id_generator.new_ids(number) if number else ())
    return [
        PushRequest(request.queue_id, request.value, request.priority, next(ids))
        if type(request) is PushRequest and not request.id
        else request
        for request in requests
    ]


@executes(PushRequest, PushManyRequest, prepare=with_ids)
def push(queue: OpenQueue, tr: Transaction, requests: Sequence[PushRequest | PushManyRequest]) -> Sequence[Any]:
    """Push for as many as fit together; refusals take the place of answers."""
    record = tr.get(queue.config_key).wait()
    guess = queue.guess
    if record != guess[0]:
        queue.settle(record)
        guess = queue.guess
    config = guess[1]
    prepared: _Prepared = guess[2].get(_prepare) or queue.prepare(config, _prepare)
    if prepared.plain and {*map(type, requests)} == {PushRequest}:
        values = list(map(_value, requests))
        if sum(map(len, values)) <= BATCH_BYTES:
            return _insert(tr, prepared, values, list(map(_priority, requests)), list(map(_id, requests)))
    pushes = together([as_many(request) for request in requests])
    if config.max_depth is not None:  # the next is measured by what this one writes
        pushes = pushes[:1]
    answers: Sequence[list[Item] | Refused]
    if prepared.plain and len(pushes) > 1 and not any(push.due_ms for push in pushes):
        answers = _push_together(tr, prepared, pushes)
    else:
        answers = [_push(tr, queue, config, push) for push in pushes]
    return [
        answer[0] if type(request) is PushRequest and type(answer) is list else answer
        for request, answer in zip(requests, answers, strict=False)
    ]


def _push_together(
    tr: Transaction, prepared: "_Prepared", pushes: Sequence[PushManyRequest]
) -> Sequence[list[Item] | Refused]:
    """Write the items of pushes that are ready at once and that nothing refuses; `_push` does the same for each."""
    rows = list(chain.from_iterable(push.values for push in pushes))
    ids = list(chain.from_iterable(push.ids for push in pushes))
    values, priorities = zip(*rows, strict=True) if rows else ((), ())
    items = iter(_insert(tr, prepared, values, priorities, ids) if rows else ())
    return [list(islice(items, len(push.values))) for push in pushes]


def _push(tr: Transaction, queue: OpenQueue, config: Config, push: PushManyRequest) -> list[Item] | Refused:
    """Write the items of one push, or refuse it."""
    try:
        admit(tr, queue.keys, config, (len(value) for value, _ in push.values))
    except (QueueClosed, QueueFull, ValueTooLarge) as error:
        return Refused(error)
    if push.due_ms:
        return _insert_delayed(tr, queue, config, push)
    if not push.values:
        return []
    values, priorities = zip(*push.values, strict=True)
    return _insert(tr, queue.prepare(config, _prepare), values, priorities, push.ids)


def as_many(request: PushRequest | PushManyRequest) -> PushManyRequest:
    if isinstance(request, PushRequest):
        return PushManyRequest(request.queue_id, ((request.value, request.priority),), (request.id,))
    return request


def together(pushes: Sequence[PushManyRequest]) -> Sequence[PushManyRequest]:
    """Return the first pushes that fit into one transaction, one at least."""
    items, size = ready.MAX_ITEMS, BATCH_BYTES
    for n, push in enumerate(pushes):
        items -= len(push.values)
        size -= sum(map(len, map(itemgetter(0), push.values)))
        if n and (items < 0 or size < 0):
            return pushes[:n]
    return pushes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """What all pushes under one config have in common: above all the newest generation's keys."""

    #: No limit holds, and pushing is not closed.
    plain: bool
    base: int
    codec: Codec | None
    begin: bytes
    index: bytes
    place: bytes
    fifo: bool
    edges: tuple[Priority, ...]
    #: The totals that a push adds its number of items to; and, with 1 for each, those that it adds 1 to.
    counters: tuple[bytes, bytes]
    signals: Mapping[bytes, int]
    bands: tuple[bytes, ...]


def _prepare(keys: QueueKeys, config: Config) -> _Prepared:
    newest = config.generations[-1]
    generation = keys.generation(newest)
    return _Prepared(
        plain=not config.limited and not config.closed,
        base=config.base,
        codec=config.values,
        begin=generation.ready.prefix,
        index=keys.index("ready", newest).prefix,
        place=place(newest, b""),
        fifo=config.fifo,
        edges=config.edges,
        counters=(generation.counters.key("ready", "in"), keys.traffic.key("push")),
        signals={keys.change: 1, keys.wake: 1},
        bands=tuple(generation.bands.key(band, "in") for band in range(len(config.edges) + 1)),
    )


def _insert(
    tr: Transaction,
    prepared: _Prepared,
    values: Sequence[bytes],
    priorities: Sequence[Any],
    ids: Sequence[bytes],
) -> list[Item]:
    """Write values, at least one, in order as ready, and return them as items.

    Column by column: a loop of its own for every value was most of what a push cost.
    """
    n = len(values)
    stamps = tr.stamps(n)
    counts = range(prepared.base + stamps.start, prepared.base + stamps.stop)
    packed_ids = pack_ids(ids)
    suffixes = list(map(add, pack_numbers(counts), packed_ids))
    deltas = {**dict.fromkeys(prepared.counters, n), **prepared.signals}
    if not prepared.fifo:
        suffixes = list(map(add, pack_priorities(priorities), suffixes))
        if n == 1:
            deltas[prepared.bands[bisect_right(prepared.edges, priorities[0])]] = 1
        else:
            for band, number in count_bands(priorities, prepared.edges).items():
                deltas[prepared.bands[band]] = number
    tr.set_new(list(map(add, repeat(prepared.begin), suffixes)), values)
    tr.set_new(list(map(add, repeat(prepared.index), packed_ids)), list(map(add, repeat(prepared.place), suffixes)))
    tr.add_all(deltas)
    return ready_items(values, suffixes, prepared.codec)


def _insert_delayed(tr: Transaction, queue: OpenQueue, config: Config, push: PushManyRequest) -> list[Item]:
    """Write the items of a push of which some are delayed."""
    newest, states = config.generations[-1], ["ready" if due_ms is None else "delayed" for due_ms in push.due_ms]
    held = [
        tr.get(key)
        for state, rand in zip(states, push.ids, strict=True)
        for key in queue.keys.found_at(state, newest, rand)
    ]
    if any(read.wait() is not None for read in held):
        raise taken()
    delta = CounterDelta(queue.keys, wake=False)
    delta.traffic("push", len(push.values))
    items = []
    for (value, priority), rand, due in zip(push.values, push.ids, push.due_ms, strict=True):
        if due is None:
            suffix = ready_suffix(priority, config.base + tr.stamp(), rand)
            there = state_machine.new_ready(rand, value, config, suffix)
        else:
            there = state_machine.new_delayed(rand, value, config, priority, due)
        state_machine.change(tr, queue.keys, config, None, there, delta, now_ms=push.now_ms)
        items.append(as_item(there, fifo=config.fifo, codec=config.values))
    delta.apply(tr)
    return items
