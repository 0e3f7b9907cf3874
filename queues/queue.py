"""The handle of one queue, and its verbs.

Each verb is one transaction; given `tr=` it joins that transaction instead and takes effect when that one commits.
A handle holds the queue's id, so it survives a rename. It also remembers the config as a guess: the config is read
in every transaction together with the data, and the guess is only used when the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from queues import cursor as cursors
from queues import ids, ready
from queues.backing import Backing
from queues.config import Config, Kind, Pause
from queues.cursor import End
from queues.errors import (
    BadQueueKind,
    BadValue,
    QueueClosed,
    QueueNotFound,
    QueuePaused,
    TooLarge,
    ValueTooLarge,
    WrongKind,
)
from queues.item import Item, Page
from queues.keyspace import STATES, GenerationKeys, total
from queues.kv.port import ReadTransaction, Transaction
from queues.names import display_name
from queues.priority import Priority, PriorityType, normalise
from queues.status import QueueStatus, Totals, begin_status, read_totals
from queues.tally import wake

T = TypeVar("T")

#: Bytes; below FoundationDB's 100,000 so that a record around the value fits as well.
MAX_VALUE_SIZE = 90_000
MAX_PAGE = 1_000
_ENDS: dict[str, End] = {"min": "min", "max": "max", "head": "min", "tail": "max"}


class Queue:
    """A named, durable, double-ended priority queue, or a FIFO queue. Thread-safe."""

    def __init__(self, backing: Backing, config: Config) -> None:
        self._backing = backing
        self._keys = backing.keyspace.queue(config.id)
        self._config_key = backing.keyspace.config(config.id)
        #: (bytes, decoded): replaced as one, so that threads never mix two configs.
        self._guess: tuple[bytes, Config] = (config.encode(), config)

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} {self.kind}>"

    @property
    def id(self) -> int:
        """The queue's number, the same through renames."""
        return self._guess[1].id

    @property
    def name(self) -> str:
        """The name, as last read."""
        return self._guess[1].name

    @property
    def kind(self) -> Kind:
        """`priority` or `fifo`."""
        return self._guess[1].kind

    @property
    def priority_type(self) -> PriorityType:
        """`int`, `float` or `str`; without meaning in a FIFO queue."""
        return self._guess[1].priority_type

    @property
    def config(self) -> Config:
        """The config, as last read."""
        return self._guess[1]

    @property
    def edges(self) -> tuple[Priority, ...]:
        """The edges of the priority bands; empty in a FIFO queue."""
        return self._guess[1].edges

    @property
    def pause_state(self) -> Pause | None:
        """The pause, as last read; one whose time has passed no longer holds."""
        pause = self._guess[1].pause
        return pause if pause is not None and pause.holds(self._backing.now_ms()) else None

    # Priority queues

    def push(self, value: bytes, *, priority: Priority, tr: Transaction | None = None) -> Item:
        """Add an item. Conflicts with nobody; run twice it adds two items."""
        return self.push_many([(value, priority)], tr=tr)[0]

    def push_many(self, items: Iterable[tuple[bytes, Priority]], *, tr: Transaction | None = None) -> list[Item]:
        """Add at most 1,000 items and 5 MB as one: all or none, in this order."""
        self._require("priority", "push", "enqueue")
        kind = self.priority_type
        return self._insert([(_value(value), normalise(priority, kind)) for value, priority in items], tr)

    def pop_min(self, *, tr: Transaction | None = None) -> Item | None:
        """Take the item of the smallest priority, the oldest among equals; None when nothing is ready."""
        return _only(self.pop_many(1, end="min", tr=tr))

    def pop_max(self, *, tr: Transaction | None = None) -> Item | None:
        """Take the item of the largest priority, the newest among equals; None when nothing is ready."""
        return _only(self.pop_many(1, end="max", tr=tr))

    def pop_many(self, n: int, *, end: str = "min", tr: Transaction | None = None) -> list[Item]:
        """Take at most `n` items (1 to 1,000, 5 MB) from one end as one, the first to leave first."""
        self._require("priority", "pop", "dequeue")
        return self._take(n, _end(end), tr)

    def peek_min(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item that pop_min would take, changing nothing."""
        self._require("priority", "peek_min", "peek")
        return self._peek("min", tr)

    def peek_max(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item that pop_max would take, changing nothing."""
        self._require("priority", "peek_max", "peek")
        return self._peek("max", tr)

    # FIFO queues

    def enqueue(self, value: bytes, *, tr: Transaction | None = None) -> Item:
        """Add an item at the tail. Conflicts with nobody; run twice it adds two items."""
        return self.enqueue_many([value], tr=tr)[0]

    def enqueue_many(self, values: Iterable[bytes], *, tr: Transaction | None = None) -> list[Item]:
        """Add at most 1,000 items and 5 MB at the tail as one: all or none, in this order."""
        self._require("fifo", "enqueue", "push")
        return self._insert([(_value(value), None) for value in values], tr)

    def dequeue(self, *, tr: Transaction | None = None) -> Item | None:
        """Take the item at the head; None when nothing is ready."""
        return _only(self.dequeue_many(1, tr=tr))

    def dequeue_many(self, n: int, *, tr: Transaction | None = None) -> list[Item]:
        """Take at most `n` items (1 to 1,000, 5 MB) from the head as one, in order."""
        self._require("fifo", "dequeue", "pop")
        return self._take(n, "min", tr)

    def peek(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item at the head, changing nothing."""
        self._require("fifo", "peek", "peek_min")
        return self._peek("min", tr)

    # Both kinds: looking

    def depth(self, state: str = "ready", *, tr: ReadTransaction | None = None) -> int:
        """Return the exact number of items in a state (ready, delayed, leased, dead), from counters."""
        if state not in STATES:
            raise BadQueueKind(f"Items are ready, delayed, leased or dead, not {state!r}.")

        def count(tr: ReadTransaction) -> int:
            generations = self._current(tr).generations
            reads = [
                (tr.get(keys.counter(state, "in")), tr.get(keys.counter(state, "out")))
                for keys in map(self._keys.generation, generations)
            ]
            return sum(total(arrived.wait()) - total(left.wait()) for arrived, left in reads)

        return self._backing.read(count, tr)

    def totals(self, *, tr: ReadTransaction | None = None) -> Totals:
        """Return the exact depths by state and the traffic, from counters."""
        return self._backing.read(lambda tr: read_totals(tr, self._keys, self._current(tr)), tr)

    def oldest(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the ready item that was pushed first, from the index by age."""

        def look(tr: ReadTransaction) -> Item | None:
            read = ready.OldestRead(tr, self._keys)
            config = self._current(tr)
            found = read.wait()
            return None if found is None else ready.at_place(tr, self._keys, config, found[1])

        return self._backing.read(look, tr)

    def find(self, item_id: str, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item of this id; None when it was taken or never was here."""
        rand = ids.parse(item_id)
        if rand is None:
            return None

        def look(tr: ReadTransaction) -> Item | None:
            place = tr.get(self._keys.index("ready", rand))
            config = self._current(tr)
            where = place.wait()
            return None if where is None else ready.at_place(tr, self._keys, config, where)

        return self._backing.read(look, tr)

    def items(
        self,
        *,
        end: str = "min",
        limit: int = 50,
        after: str | None = None,
        priority: Priority | None = None,
        preview: int | None = None,
        tr: ReadTransaction | None = None,
    ) -> Page:
        """Return a page of ready items in order from one end, changing nothing.

        `after` is the cursor of the page before; else `priority` begins at that priority, seen from `end`.
        Values are cut to `preview` bytes. The cost depends on `limit` alone, not on depth or place.
        """
        side = _end(end)
        if not 1 <= limit <= MAX_PAGE:
            raise TooLarge(f"A page has 1 to {MAX_PAGE:,} items.")
        suffix = None if after is None else cursors.decode(after, self.id, side)
        if priority is not None:
            self._require("priority", "a priority", "head or tail")
            priority = normalise(priority, self.priority_type)

        def look(tr: ReadTransaction) -> Page:
            config = self._current(tr)
            reads = []
            for generation in config.generations:
                keys = self._keys.generation(generation)
                begin, stop = _window(keys, side, suffix, priority)
                read = tr.get_range(begin, stop, limit=limit + 1, reverse=side == "max")
                reads.append((generation, keys, read))
            entries = [
                ready.Entry(generation, keys.suffix_of(key), key, value)
                for generation, keys, read in reads
                for key, value in read.wait()
            ]
            entries.sort(key=lambda entry: entry.suffix, reverse=side == "max")
            shown = entries[:limit]
            more = len(entries) > limit
            return Page(
                items=tuple(ready.as_item(entry, config, preview=preview) for entry in shown),
                cursor=cursors.encode(self.id, side, shown[-1].suffix) if more else None,
            )

        return self._backing.read(look, tr)

    def status(self, *, preview: int = 256, tr: ReadTransaction | None = None) -> QueueStatus:
        """Return everything that a screen shows of this queue, at one read version; values cut to `preview`."""

        def look(tr: ReadTransaction) -> QueueStatus:
            change = tr.get(self._keys.change)
            config = self._current(tr)
            return begin_status(tr, self._keys, config, total(change.wait()), preview)()

        return self._backing.read(look, tr)

    # Both kinds: operating

    def pause(self, *, reason: str, until: datetime | None = None, by: str = "", tr: Transaction | None = None) -> None:
        """Stop taking, with a reason; pushing goes on. `until` (aware) resumes by itself."""
        if until is not None and until.tzinfo is None:
            raise BadValue("The time to resume needs a time zone.")
        now = self._backing.now()
        if until is not None and until <= now:
            raise BadQueueKind("The time to resume has passed already.")
        pause = Pause(reason=reason, by=by, since=now, until=until)
        self._reconfigure(lambda config: replace(config, pause=pause), tr)

    def resume(self, *, tr: Transaction | None = None) -> None:
        """Let items be taken again; resuming what is not paused changes nothing."""
        self._reconfigure(lambda config: replace(config, pause=None), tr)

    # Inside

    def _reconfigure(self, change: Callable[[Config], Config], tr: Transaction | None) -> None:
        def write(tr: Transaction) -> tuple[bytes, Config]:
            before = self._current(tr)
            config = change(before)
            record = config.encode()
            if config != before:
                tr.use_reserve()
                tr.set(self._config_key, record)
                wake(tr, self._keys)
            return record, config

        guess = self._backing.transact(write, tr)
        if tr is None:
            self._guess = guess

    def _insert(self, values: Sequence[tuple[bytes, Priority | None]], tr: Transaction | None) -> list[Item]:
        if len(values) > ready.MAX_ITEMS or sum(len(value) for value, _ in values) > ready.MAX_BYTES:
            raise TooLarge("One transaction pushes at most 1,000 items and 5 MB; push them in parts.")
        if not values:
            return []
        rands = self._backing.minter.mint_many(len(values))

        def write(tr: Transaction) -> list[Item]:
            config = self._current(tr)
            if config.closed:
                raise QueueClosed(f"Pushing to {display_name(config.name)} is closed.")
            return ready.insert(tr, self._keys, config, values, rands)

        return self._backing.transact(write, tr)

    def _take(self, n: int, end: End, tr: Transaction | None) -> list[Item]:
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= ready.MAX_ITEMS:
            raise TooLarge("One transaction takes 1 to 1,000 items.")
        now_ms = self._backing.now_ms()
        serializable = tr is not None
        return self._backing.transact(
            lambda tr: self._take_in(tr, n=n, end=end, serializable=serializable, now_ms=now_ms), tr
        )

    def _take_in(self, tr: Transaction, *, n: int, end: End, serializable: bool, now_ms: int) -> list[Item]:

        def issue(config: Config) -> ready.Heads:
            source = tr if serializable else tr.snapshot
            return ready.Heads(source, self._keys, config.generations, end=end, limit=n)

        config, heads = self._with_config(tr, issue)
        if config.pause is not None and config.pause.holds(now_ms):
            raise QueuePaused(_paused(config, config.pause))
        entries = heads.wait()
        if not entries:
            ready.note_drift(tr, self._keys, config)
            return []
        return ready.take(tr, self._keys, config, entries, now_ms)

    def _peek(self, end: End, tr: ReadTransaction | None) -> Item | None:
        def look(tr: ReadTransaction) -> Item | None:
            config, heads = self._with_config(
                tr, lambda config: ready.Heads(tr, self._keys, config.generations, end=end, limit=1)
            )
            entries = heads.wait()
            return ready.as_item(entries[0], config) if entries else None

        return self._backing.read(look, tr)

    def _with_config(self, tr: ReadTransaction, issue: Callable[[Config], T]) -> tuple[Config, T]:
        """Read the config together with what `issue` reads by the guess; issue again when the guess was wrong."""
        read = tr.get(self._config_key)
        guess = self._guess
        issued = issue(guess[1])
        config = self._settle(read.wait())
        return (config, issued) if config is guess[1] else (config, issue(config))

    def _current(self, tr: ReadTransaction) -> Config:
        return self._settle(tr.get(self._config_key).wait())

    def _settle(self, record: bytes | None) -> Config:
        guess = self._guess
        if record is None:
            raise QueueNotFound(guess[1].name)
        if record != guess[0]:
            self._guess = guess = (record, Config.decode(record))
        return guess[1]

    def _require(self, kind: Kind, verb: str, instead: str) -> None:
        if self.kind != kind:
            raise WrongKind(f"{display_name(self.name)} is a {self.kind} queue: it has no {verb}, use {instead}.")


def _value(value: bytes) -> bytes:
    if isinstance(value, bytearray | memoryview):
        value = bytes(value)
    if not isinstance(value, bytes):
        raise BadValue(f"A value is bytes, not {type(value).__name__}: encode it first.")
    if len(value) > MAX_VALUE_SIZE:
        raise ValueTooLarge(f"A value has at most {MAX_VALUE_SIZE:,} bytes; this one has {len(value):,}.")
    return value


def _end(end: str) -> End:
    if end not in _ENDS:
        raise BadQueueKind(f"The ends of a queue are min and max (FIFO: head and tail), not {end!r}.")
    return _ENDS[end]


def _only(items: list[Item]) -> Item | None:
    return items[0] if items else None


def _window(keys: GenerationKeys, end: End, suffix: bytes | None, priority: Priority | None) -> tuple[bytes, bytes]:
    begin, stop = keys.ready_range
    if suffix is not None:
        place = keys.ready(suffix)
        return (place + b"\x00", stop) if end == "min" else (begin, place)
    if priority is not None:
        first, last = keys.from_priority(priority)
        return (first, stop) if end == "min" else (begin, last)
    return begin, stop


def _paused(config: Config, pause: Pause) -> str:
    by = f" by {pause.by}" if pause.by else ""
    return f"{display_name(config.name)} is paused{by}: {pause.reason}"
