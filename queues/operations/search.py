"""Searching a queue: what is looked for, and one bounded step of looking.

A step is one read transaction over at most so many items and about so many bytes, so that it is quick at any depth;
its cursor says where the next one goes on, and how much was looked through. Positions are keys: items that come and go
meanwhile neither stop a search nor are met twice, unless an act gave them another place ahead of it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from typing import Any

from queues.errors import BadCursor, BadEnd, BadLimit, BadState, NaiveTime, TooLarge, WrongKind, display_name
from queues.items import ready
from queues.items import scan as walking
from queues.items.scan import ORDERS, Lane, Met, Order
from queues.items.stored_item import ItemRead, as_item
from queues.keys.queue_keys import STATES
from queues.keys.suffix import read_place
from queues.kv.port import ReadTransaction
from queues.model import cursor as cursors
from queues.model import ids
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.ids import at, to_ms
from queues.model.item import Item
from queues.model.priority import Priority, normalize
from queues.model.records import reading
from queues.operations.handle import Handle, check_limit
from queues.operations.search_step import FIRST_READ, MAX_READ, Step

#: Items that one step looks through at most.
MAX_SCAN = 100_000
#: Characters of what is looked for.
MAX_TEXT = 1_000

_ENDS: tuple[End, ...] = ("min", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for: items of one state that fit in every respect that is named. Bounds belong to their ranges."""

    state: str = "ready"
    #: A part of the value, ASCII letters of either case; of a dead item, or of the reason why it is dead.
    text: str = ""
    #: A whole id, or a part of one.
    item_id: str = ""
    low: Priority | None = None
    high: Priority | None = None
    #: Pushed then or later, and then or earlier, aware; what others wrote says no time and never fits.
    since: datetime | None = None
    until: datetime | None = None

    @property
    def filters(self) -> bool:
        """Say whether it leaves out any item of its state."""
        return self != Query(state=self.state)

    def matches(self, item: Item, *, shown: Callable[[bytes], bytes] | None = None) -> bool:
        """Say whether an item with its whole value fits; `shown` gives what the searcher sees of a value."""
        return self.fits(item) and (self.says(item.raw, shown=shown) or self._reasons(item))

    def fits(self, item: Item) -> bool:
        """Say whether an item fits in all respects but its value."""
        return (
            item.state == self.state
            and self.item_id.lower() in item.id
            and (self.low is None or (_same(item.priority, self.low) and item.priority >= self.low))  # type: ignore[operator]
            and (self.high is None or (_same(item.priority, self.high) and item.priority <= self.high))  # type: ignore[operator]
            and (self.since is None or (item.pushed_at is not None and to_ms(item.pushed_at) >= to_ms(self.since)))
            and (self.until is None or (item.pushed_at is not None and to_ms(item.pushed_at) <= to_ms(self.until)))
        )

    def says(self, value: bytes, *, shown: Callable[[bytes], bytes] | None = None) -> bool:
        """Say whether a value contains the text, and what is seen of it does."""
        if not self.text:
            return True
        text = self.text.encode("utf-8", "surrogatepass").lower()
        return text in value.lower() and (shown is None or text in shown(value).lower())

    def picked(self, met: Met, *, shown: Callable[[bytes], bytes] | None) -> Item | None:
        """Return what a walk met as an item if it fits; its value is looked at first, as that is the less work."""
        said = self.says(met.value, shown=shown)
        if not said and self.state != "dead":
            return None
        item = met.item()
        return item if self.fits(item) and (said or self._reasons(item)) else None

    def _reasons(self, item: Item) -> bool:
        """Say whether the reason why an item is dead contains the text, by the same rule as a value does."""
        return item.state == "dead" and self.says(item.reason.encode("utf-8", "surrogatepass"))

    def encode(self) -> dict[str, Any]:
        """Return it as plain JSON values, without what is not named."""
        found: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value not in ("", None):
                found[field.name] = to_ms(value) if isinstance(value, datetime) else value
        return found

    @classmethod
    def decode(cls, found: dict[str, Any]) -> Query:
        """Read what `encode` returned."""
        named: dict[str, Any] = {
            name: at(value) if name in ("since", "until") else value for name, value in found.items()
        }
        return cls(**named)

    def check(self) -> None:
        """Raise an error that says what makes no sense in it."""
        if self.state not in STATES:
            raise BadState("Items are ready, delayed, leased or dead, not {state}.", state=f"{self.state!r:.40}")
        if len(self.text) > MAX_TEXT or len(self.item_id) > MAX_TEXT * 30:
            raise TooLarge("One looks for at most {most:,} characters.", most=MAX_TEXT)
        if any(time is not None and time.utcoffset() is None for time in (self.since, self.until)):
            raise NaiveTime("A time to search from or to needs a time zone.")

    @property
    def mark(self) -> bytes:
        """What tells its cursors from another query's."""
        return zlib.crc32(json.dumps(self.encode(), sort_keys=True).encode()).to_bytes(4, "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one step of a search found."""

    items: tuple[Item, ...]
    #: Items that this step looked at.
    searched: int
    #: Pass it as `after=` to go on; None when there is nothing left.
    cursor: str | None
    #: The search is over: everything was looked at.
    ended: bool
    #: By place or by age: see `Searching.search`.
    order: Order
    #: Items that all steps up to here looked at, and found.
    searched_so_far: int
    found_so_far: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Where a step begins."""

    order: Order | None = None
    place: bytes | None = None
    searched: int = 0
    found: int = 0


class Searching(Handle):
    """The verbs of looking for particular items."""

    def find(self, item_id: str, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item of this id in whatever state; None when it is gone or never was here."""
        rand = ids.parse(item_id)
        if rand is None:
            return None

        def look(tr: ReadTransaction) -> Item | None:
            def issue(config: Config) -> dict[str, ready.PlaceRead]:
                return {state: ready.PlaceRead(tr, self._keys, config.generations, rand, state) for state in STATES}

            config, places = self._with_config(tr, issue)
            for state, read in places.items():
                where = read.wait()
                if where is not None:
                    with reading(config.name):
                        there = ItemRead(tr, self._keys, rand, state, where).wait()
                        return None if there is None else as_item(there, fifo=config.fifo, codec=config.values)
            return None

        return self._context.read(look, tr)

    def query(self, query: Query) -> Query:
        """Return a query as this queue understands it: priorities of its type; raise what tells why it cannot."""
        query.check()
        if query.low is None and query.high is None:
            return query
        if self.kind == "fifo":
            raise WrongKind("{queue} is a fifo queue: its items have no priorities.", queue=display_name(self.name))
        low, high = (
            None if bound is None else normalize(bound, self.priority_type) for bound in (query.low, query.high)
        )
        return replace(query, low=low, high=high)

    def search(
        self,
        query: Query,
        *,
        after: str | None = None,
        end: End = "min",
        limit: int = 50,
        scan: int = 5_000,
        preview: int | None = None,
        shown: Callable[[bytes], bytes] | None = None,
        tr: ReadTransaction | None = None,
    ) -> Found:
        """Do one step of a search: look at no more than `scan` items, or 1 MB, for at most `limit` that fit.

        `after` is the cursor of the step before; each item is met once. From `end`: of the ready the first to leave
        there, of others the next due, to expire or that died first; with bounds in time, or among leased items, the
        oldest (`max`: the newest). Returned values are cut to `preview` bytes; `shown` is that of `Query.matches`.
        """
        check_limit(limit)
        if not 1 <= scan <= MAX_SCAN:
            raise BadLimit("A step of a search looks at 1 to {most:,} items.", most=MAX_SCAN)
        if end not in _ENDS:
            raise BadEnd("A search begins at the min or the max end, not {end}.", end=f"{end!r:.40}")
        wanted = self.query(query)
        start = _Start() if after is None else self._start(after, wanted, end)

        def look(tr: ReadTransaction) -> Found:
            config = self._current(tr)
            self._check_query(wanted)
            if after is None and _is_whole(wanted.item_id, attached=config.attached):
                return self._one(tr, wanted, preview, shown)
            # Where keys tell what fits, one read brings the page and tells whether more is behind it.
            whole = not wanted.text and not wanted.item_id and limit < MAX_READ  # a page is one read
            first = limit + 1 if whole else FIRST_READ
            step = Step(partial(wanted.picked, shown=shown), limit=limit, scan=scan, first=first)
            order = start.order or self._order(tr, config, wanted, scan)
            place = self._steps(tr, config, order, start.place, step, query=wanted, end=end)
            items = step.items
            if order == "place" and wanted.state == "ready":
                items = self._attempts(tr, config, items)
            if preview is not None:
                items = [replace(item, raw=item.raw[:preview]) for item in items]
            searched, found = start.searched + step.searched, start.found + len(items)
            return Found(
                items=tuple(items),
                searched=step.searched,
                cursor=None if place is None else self._cursor(wanted, end, order, place, searched, found),
                ended=place is None,
                order=order,
                searched_so_far=searched,
                found_so_far=found,
            )

        return look(tr) if tr is not None else self._context.kv.read(look, background=True)

    # How the items lie; attached queues differ

    def _check_query(self, query: Query) -> None:
        """Raise for what this queue's items cannot be asked."""

    def _lanes(self, config: Config, order: Order, query: Query) -> list[Lane]:
        if order == "age":
            since, until = _ms(query.since), _ms(query.until)
            return walking.by_age(self._keys, config, query.state, since, until)
        return walking.by_place(self._keys, config, query.state, query.low, query.high)

    def _meet(
        self, tr: ReadTransaction, config: Config, order: Order, state: str, found: Sequence[walking.Found]
    ) -> list[Met | None]:
        read = walking.read_index if order == "age" else walking.read_places
        return read(tr, self._keys, config, state, found)

    def _order(self, tr: ReadTransaction, config: Config, query: Query, scan: int) -> Order:
        """Choose the order in which less is looked at."""
        if query.since is None and query.until is None:
            # Leases that are extended change their places, but not their ids.
            return "age" if query.state == "leased" and query.filters else "place"
        if query.state != "ready" or (query.low is None and query.high is None):
            return "age"
        # Bounds of both kinds: the index, when a step is enough to go through it.
        lanes = self._lanes(config, "age", query)
        return "age" if walking.along(tr, lanes, after=None, end="min", limit=scan)[1] else "place"

    def _attempts(self, tr: ReadTransaction, config: Config, found: Sequence[Item]) -> list[Item]:
        """Return ready items with their attempts, which their own keys do not tell."""
        if not found or not ready.Ahead(tr, self._keys, config.generations).tried():
            return list(found)
        reads = [ready.PlaceRead(tr, self._keys, config.generations, bytes.fromhex(item.id)) for item in found]
        return [
            item if (where := read.wait()) is None else replace(item, attempts=read_place(where)[2])
            for item, read in zip(found, reads, strict=True)
        ]

    # One step

    def _steps(
        self,
        tr: ReadTransaction,
        config: Config,
        order: Order,
        after: bytes | None,
        step: Step,
        *,
        query: Query,
        end: End,
    ) -> bytes | None:
        """Read until the step is full; return the place behind which the next one begins, None when that is all."""
        lanes = self._lanes(config, order, query)
        place = after
        while True:
            found, last = walking.along(tr, lanes, after=place, end=end, limit=step.next_read())
            met = self._meet(tr, config, order, query.state, found)
            for (at_place, _, _), one in zip(found, met, strict=True):
                if not step.meet(at_place, one):
                    return step.cut()
            if last:
                return None
            place = found[-1][0]
            if step.full():
                return place

    def _one(
        self, tr: ReadTransaction, query: Query, preview: int | None, shown: Callable[[bytes], bytes] | None
    ) -> Found:
        """Look a whole id up."""
        item = self.find(query.item_id.lower(), tr=tr)
        fits = item is not None and query.matches(item, shown=shown)
        if item is not None and preview is not None:
            item = replace(item, raw=item.raw[:preview])
        items = (item,) if item is not None and fits else ()
        looked = int(item is not None)
        return Found(
            items=items,
            searched=looked,
            cursor=None,
            ended=True,
            order="place",
            searched_so_far=looked,
            found_so_far=len(items),
        )

    def _cursor(self, query: Query, end: End, order: Order, place: bytes, searched: int, found: int) -> str:
        head = bytes([ORDERS.index(order), _ENDS.index(end)]) + query.mark
        return cursors.encode(self.id, "search", head + searched.to_bytes(8, "big") + found.to_bytes(8, "big") + place)

    def _start(self, cursor: str, query: Query, end: End) -> _Start:
        body = cursors.decode(cursor, self.id, "search")
        if len(body) < 23 or body[0] >= len(ORDERS) or body[1] != _ENDS.index(end) or body[2:6] != query.mark:
            raise BadCursor("This page address belongs to another search; start again from its beginning.")
        return _Start(
            order=ORDERS[body[0]],
            place=body[22:],
            searched=int.from_bytes(body[6:14], "big"),
            found=int.from_bytes(body[14:22], "big"),
        )


def _same(priority: Priority | None, bound: Priority) -> bool:
    """Say whether a priority can be compared: others may have written any, and keys order by type before value."""
    return type(priority) is type(bound)


def _ms(when: datetime | None) -> int | None:
    return None if when is None else to_ms(when)


def _is_whole(item_id: str, *, attached: bool) -> bool:
    return item_id.startswith("key-") if attached else ids.parse(item_id.lower()) is not None
