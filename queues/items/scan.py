"""Walks over the items of one state, in chunks of one transaction, and what they look for.

By place, in the order in which the state keeps its items; or by age, through the index of ids, in which an item has one
place for life. A walk remembers nothing but the last place: what comes and goes meanwhile neither stops nor turns it.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from queues.errors import BadState, BadTime, BadValue, NaiveTime, TooLarge
from queues.items import ready
from queues.items.stored_item import ItemRead, StoredItem, as_item, from_lease, from_record
from queues.keys.keyspace import first_id
from queues.keys.queue_keys import IN_GENERATIONS, STATES, QueueKeys, id_by_age, last_element, timed_elements
from queues.kv.port import KeyValue, ReadTransaction
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.error_groups import error_group, without_values
from queues.model.fields import field_says
from queues.model.ids import LAST_MS, at, to_ms
from queues.model.item import Item
from queues.model.priority import Priority
from queues.model.records import UNREADABLE, reading
from queues.model.tuples import Range

#: Characters of what is looked for.
MAX_TEXT = 1_000
Order = Literal["place", "age"]
ORDERS: tuple[Order, ...] = ("place", "age")


@dataclass(slots=True)
class Met:
    """An item that a walk meets."""

    #: Its place in the order of the walk.
    place: bytes
    #: The whole value.
    value: bytes
    #: Reads the rest, where that is asked for.
    item: Callable[[], Item]


@dataclass(frozen=True, slots=True)
class Lane:
    """A stretch of keys that a walk goes along: one of each generation."""

    generation: int
    within: Range
    key: Callable[[bytes], bytes]
    place: Callable[[bytes], bytes]

    def behind(self, place: bytes | None, end: End) -> Range:
        """Return what is left of the stretch behind a place."""
        first, last = self.within
        if place is None:
            return first, last
        key = self.key(place)
        return (max(first, key + b"\x00"), last) if end == "min" else (first, min(last, key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for: items of one state that fit in all named respects. Bounds belong to their ranges."""

    state: str = "ready"
    #: A part of the value, ASCII letters of either case; of a dead item, or of the reason why it is dead.
    text: str = ""
    #: A dotted path such as `customer.id`: the text is looked for in this field of JSON or msgpack alone. `exact`: the
    #: field is the text; otherwise it contains it.
    field: str = ""
    exact: bool = False
    #: A whole id, or a part of one.
    item_id: str = ""
    #: Of the reason why an item is dead, its group: see `queues.model.error_groups`.
    error: str = ""
    #: The whole name of the worker that holds a leased item.
    worker: str = ""
    low: Priority | None = None
    high: Priority | None = None
    #: Pushed then or later, and then or earlier, aware; a ready item: ready since then or later, and then or earlier.
    #: Foreign keys tell no time and never fit.
    since: datetime | None = None
    until: datetime | None = None

    @property
    def filters(self) -> bool:
        """Say whether it leaves out any item of its state."""
        return self != Query(state=self.state)

    @property
    def timed(self) -> bool:
        """Say whether it asks for a time."""
        return self.since is not None or self.until is not None

    def matches(self, item: Item, *, shown: Callable[[bytes], bytes] | None = None) -> bool:
        """Say whether an item with its whole value fits. `shown` gives what the searcher sees of a value."""
        return self.fits(item) and (self.says(item.raw, shown=shown) or self._died_of(item, shown))

    def fits(self, item: Item) -> bool:
        """Say whether an item fits in all respects but its value."""
        return (
            item.state == self.state
            and self.item_id.lower() in item.id
            and (not self.error or error_group(item.reason) == self.error)
            and (not self.worker or item.worker == self.worker)
            and _is_within(item.priority, self.low, self.high)
            and (self.since is None or (item.since is not None and to_ms(item.since) >= to_ms(self.since)))
            and (self.until is None or (item.since is not None and to_ms(item.since) <= to_ms(self.until)))
        )

    def says(self, value: bytes, *, shown: Callable[[bytes], bytes] | None = None) -> bool:
        """Say whether a value contains the text, and what is seen of it does."""
        if self.field:
            seen = value if shown is None else shown(value)
            return field_says(seen, self.field, self.text, exact=self.exact)
        if not self.text:
            return True
        text = self.text.encode("utf-8", "surrogatepass").lower()
        return text in value.lower() and (shown is None or text in shown(value).lower())

    def picked(self, met: Met, *, shown: Callable[[bytes], bytes] | None) -> Item | None:
        """Return what a walk met as an item if it fits. Its value is looked at first, as that is the less work."""
        said = self.says(met.value, shown=shown)
        if not said and self.state != "dead":
            return None
        item = met.item()
        return item if self.fits(item) and (said or self._died_of(item, shown)) else None

    def _died_of(self, item: Item, shown: Callable[[bytes], bytes] | None) -> bool:
        """Say whether the reason why an item is dead contains the text, in a part that no rule may hide."""
        reason = item.reason if shown is None else without_values(item.reason)
        return item.state == "dead" and self.says(reason.encode("utf-8", "surrogatepass"))

    @property
    def named(self) -> dict[str, Any]:
        """The fields that narrow the search, by name. An empty text does not, but as a bound it is a priority."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None and value is not False and (value != "" or name in ("low", "high"))
        }

    def encode(self) -> dict[str, Any]:
        """Return it as plain JSON values, without what is not named."""
        return {name: to_ms(value) if isinstance(value, datetime) else value for name, value in self.named.items()}

    @classmethod
    def decode(cls, found: dict[str, Any]) -> "Query":
        """Read what `encode` returned."""
        named: dict[str, Any] = {
            name: at(value) if name in ("since", "until") else value for name, value in found.items()
        }
        return cls(**named)

    def check(self) -> None:
        """Raise an error that says what makes no sense in it."""
        if self.state not in STATES:
            raise BadState("Items are ready, delayed, leased or dead, not {state}.", state=f"{self.state!r:.40}")
        for text in (self.text, self.field, self.error, self.worker, self.item_id):
            if not isinstance(text, str):
                raise BadValue("What is looked for is text, not {type}.", type=type(text).__name__)
        if self.exact and not self.field:
            raise BadValue("An exact search needs the name of a field: give `field` too.")
        for time in (self.since, self.until):
            if time is not None and not isinstance(time, datetime):
                raise BadTime("A time to search from or to is a datetime, not {type}.", type=type(time).__name__)
        if (
            max(map(len, (self.text, self.field, self.error, self.worker))) > MAX_TEXT
            or len(self.item_id) > MAX_TEXT * 30
        ):
            raise TooLarge("One looks for at most {most:,} characters.", most=MAX_TEXT)
        if any(time is not None and time.utcoffset() is None for time in (self.since, self.until)):
            raise NaiveTime("A time to search from or to needs a time zone.")

    @property
    def mark(self) -> bytes:
        """What tells its cursors from another query's."""
        return zlib.crc32(json.dumps(self.encode(), sort_keys=True).encode()).to_bytes(4, "big")


#: A pair of keys and values, with the lane where it was met and its place.
Found = tuple[bytes, Lane, KeyValue]


def along(
    tr: ReadTransaction, lanes: Iterable[Lane], *, after: bytes | None, end: End, limit: int
) -> tuple[list[Found], bool]:
    """Return at most `limit` pairs behind a place in the order of places, and whether that was all."""
    reads = []
    for lane in lanes:
        begin, stop = lane.behind(after, end)
        if begin < stop:
            reads.append((lane, tr.get_range(begin, stop, limit=limit, reverse=end == "max")))
    met = [(lane.place(pair[0]), lane, pair) for lane, read in reads for pair in read.wait()]
    if len(reads) > 1:
        met.sort(key=lambda found: found[0], reverse=end == "max")
    return met[:limit], len(met) < limit


def by_place(
    keys: QueueKeys, config: Config, state: str, low: Priority | None = None, high: Priority | None = None
) -> list[Lane]:
    """Return the lanes of a state's items in their own order; of ready ones within priorities."""
    if state in ("leased", "dead"):
        of = {1: keys.expiries if state == "leased" else keys.dead}
    else:
        generations = {generation: keys.generation(generation) for generation in config.generations}
        of = {n: each.ready if state == "ready" else each.delayed for n, each in generations.items()}
    if state != "ready":
        low = high = None
    return [
        Lane(
            generation,
            (
                items.all[0] if low is None else items.below(low)[0],
                items.all[1] if high is None else items.below(high)[1],
            ),
            items.at,
            items.suffix_of,
        )
        for generation, items in of.items()
    ]


def by_age(keys: QueueKeys, config: Config, state: str, since_ms: int | None, until_ms: int | None) -> list[Lane]:
    """Return the lanes of a state's index, of what was pushed (is ready since) between two times, both included."""
    return [
        _indexed(keys, state, generation, since_ms, until_ms)
        for generation in (config.generations if state in IN_GENERATIONS else (1,))
    ]


def lanes_of(keys: QueueKeys, config: Config, order: Order, query: Query) -> list[Lane]:
    """Return the stretches of keys with the items that a query may match."""
    if order == "age":
        return by_age(keys, config, query.state, _ms(query.since), _ms(query.until))
    return by_place(keys, config, query.state, query.low, query.high)


def read_places(
    tr: ReadTransaction, keys: QueueKeys, config: Config, state: str, found: Sequence[Found], *, timed: bool = False
) -> list[Met | None]:
    """Return what lies at places of a state's own order, None where an item is gone; raise `QueueUnreadable`.

    `timed`: ready items are asked since when they are.
    """
    with reading(config.name):
        if state == "ready":
            asks = timed and ready.Ahead(tr, keys, config.generations).pasts()
            pasts = ready.pasts_of(tr, keys, config, [pair for _, _, pair in found]) if asks else {}
            return [_ready(keys, config, place, pair, pasts) for place, _, pair in found]
        if state == "leased":
            return _leases(tr, keys, config, [(place, timed_elements(place)[1]) for place, _, _ in found])
        return [
            _met(config, place, from_record(state, place, pair[1], generation=lane.generation))
            for place, lane, pair in found
        ]


def page(
    tr: ReadTransaction,
    keys: QueueKeys,
    config: Config,
    state: str,
    *,
    after: bytes | None,
    limit: int,
    preview: int | None = None,
) -> list[tuple[bytes, Item]]:
    """Return items of a state that is not ready behind a place, with their places, values cut to `preview` bytes."""
    found, _ = along(tr, by_place(keys, config, state), after=after, end="min", limit=limit)
    met = [one for one in read_places(tr, keys, config, state, found) if one is not None]
    items = [(one.place, one.item()) for one in met]
    if preview is None:
        return items
    return [(place, replace(item, raw=item.raw[:preview])) for place, item in items]


def read_index(
    tr: ReadTransaction, keys: QueueKeys, config: Config, state: str, found: Sequence[Found]
) -> list[Met | None]:
    """Return what entries of a state's index point to, None where an item is gone. Raise `QueueUnreadable`."""
    with reading(config.name):
        return _read_index(tr, keys, config, state, found)


def _read_index(
    tr: ReadTransaction, keys: QueueKeys, config: Config, state: str, found: Sequence[Found]
) -> list[Met | None]:
    if state == "leased":
        return _leases(tr, keys, config, [(rand, rand) for rand, _, _ in found])
    reads = [(place, ItemRead(tr, keys, id_by_age(place, where), state, where)) for place, _, (_, where) in found]
    return [None if there is None else _met(config, place, there) for place, read in reads for there in [read.wait()]]


def _indexed(keys: QueueKeys, state: str, generation: int, since_ms: int | None, until_ms: int | None) -> Lane:
    index = keys.index(state, generation)
    begin, end = index.all
    if since_ms is not None and since_ms > 0:
        begin = index.key(first_id(min(since_ms, LAST_MS + 1)))
    if until_ms is not None and until_ms < LAST_MS:
        end = index.key(first_id(until_ms + 1))
    return Lane(generation, (begin, end), index.key, last_element)


def _ready(keys: QueueKeys, config: Config, place: bytes, pair: KeyValue, pasts: Mapping[bytes, StoredItem]) -> Met:
    def item() -> Item:
        try:
            (there,) = ready.stored(keys, config, [pair], pasts)
            return as_item(there, fifo=config.fifo, codec=config.values)
        except UNREADABLE:
            with reading(config.name):  # only here: it would cost each item
                raise

    return Met(place, pair[1], item)


def _met(config: Config, place: bytes, there: StoredItem) -> Met:
    return Met(place, there.value, lambda: as_item(there, fifo=config.fifo, codec=config.values))


def _leases(
    tr: ReadTransaction, keys: QueueKeys, config: Config, at: Iterable[tuple[bytes, bytes]]
) -> list[Met | None]:
    reads = [(place, rand, tr.get(keys.leases.key(rand))) for place, rand in at]
    return [
        None if record is None else _met(config, place, from_lease(rand, record))
        for place, rand, read in reads
        for record in [read.wait()]
    ]


def _is_within(priority: Any, low: Any, high: Any) -> bool:
    """Say whether a priority is within the bounds that there are, and of their type, as a foreign key has any."""
    is_above = low is None or (type(priority) is type(low) and priority >= low)
    return bool(is_above and (high is None or (type(priority) is type(high) and priority <= high)))


def _ms(when: datetime | None) -> int | None:
    return None if when is None else to_ms(when)
