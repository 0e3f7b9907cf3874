"""The handle of one queue: its identity, its config as a guess, and what the verbs are made of.

A handle holds the queue's id, so it survives a rename. It also remembers the config as a guess: the config is read
in every transaction together with the data, and the guess is only used when the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from queues import delayed, ids, leased, limits, ready
from queues.backing import Backing
from queues.config import Config, Kind, Pause
from queues.cursor import End
from queues.errors import NotForAttached, QueueNotFound, QueuePaused, TooLarge, WrongKind
from queues.item import Item
from queues.kv.port import ReadTransaction, Transaction
from queues.names import display_name
from queues.priority import Priority, PriorityType
from queues.tally import Tally, wake

T = TypeVar("T")
#: Items of a page, and of one sweep's transaction.
MAX_PAGE = 1_000
#: A take promotes and expires what is late by more than this: so late it is only where nobody sweeps. At most a few of
#: each; which delayed ones, of a window, is left to chance.
_LATE_MS, _WINDOW, _FEW = 250, 100, 8


class Handle:
    """One queue by its id, and what its verbs are made of. Thread-safe."""

    def __init__(self, backing: Backing, config: Config) -> None:
        self._backing = backing
        self._keys = backing.keyspace.queue(config.id)
        self._config_key = backing.keyspace.config(config.id)
        #: (bytes, decoded): replaced as one, so that threads never mix two configs.
        self._guess: tuple[bytes, Config] = (config.encode(), config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.kind}>"

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
    def attached(self) -> bool:
        """Say whether the items lie in a subspace that others write."""
        return self._guess[1].attached

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
        rands = self._rands(values)
        if not rands:
            return []

        def write(tr: Transaction) -> list[Item]:
            tally = Tally(self._keys, wake=True)
            items = ready.insert(tr, self._keys, self._open(tr, values), values, rands, tally)
            tally.apply(tr)
            return items

        return self._backing.transact(write, tr)

    def _open(self, tr: Transaction, values: Sequence[tuple[bytes, Priority | None]]) -> Config:
        """Return the config; raise `QueueClosed`, `QueueFull`, `ValueTooLarge` when these may not come in."""
        config = self._current(tr)
        limits.admit(tr, self._keys, config, [len(value) for value, _ in values] if config.limited else ())
        return config

    def _rands(self, values: Sequence[tuple[bytes, Priority | None]]) -> list[bytes]:
        """Return a new id for each value; raise `TooLarge` for more than one transaction takes."""
        if len(values) > ready.MAX_ITEMS or sum(len(value) for value, _ in values) > ready.MAX_BYTES:
            raise TooLarge("One transaction pushes at most 1,000 items and 5 MB; push them in parts.")
        return self._backing.minter.mint_many(len(values)) if values else []

    def _take(self, n: int, end: End, tr: Transaction | None) -> list[Item]:
        check_number(n)
        now_ms = self._backing.now_ms()
        if tr is None and not self.attached:
            return self._punctually(
                now_ms,
                lambda tr, late_ms: self._pop(tr, n=n, end=end, serializable=False, now_ms=now_ms, late_ms=late_ms),
            )
        serializable = tr is not None
        return self._backing.transact(
            lambda tr: self._take_in(tr, n=n, end=end, serializable=serializable, now_ms=now_ms), tr
        )

    def _take_in(self, tr: Transaction, *, n: int, end: End, serializable: bool, now_ms: int) -> list[Item]:
        return self._pop(tr, n=n, end=end, serializable=serializable, now_ms=now_ms, late_ms=None) or []

    def _pop(
        self, tr: Transaction, *, n: int, end: End, serializable: bool, now_ms: int, late_ms: int | None
    ) -> list[Item] | None:
        config, entries = self._front(tr, n=n, end=end, serializable=serializable, now_ms=now_ms, late_ms=late_ms)
        if not entries:
            return None if entries is None else []
        tally = Tally(self._keys, wake=False)
        items = ready.take(tr, self._keys, config, entries, now_ms, tally)
        tally.apply(tr)
        return items

    def _front(
        self, tr: Transaction, *, n: int, end: End, serializable: bool, now_ms: int, late_ms: int | None
    ) -> tuple[Config, list[ready.Entry] | None]:
        """Return the config and what stands at one end, or None when something was due by `late_ms`."""
        expired = None if late_ms is None else tr.snapshot.get_key(*self._keys.expired_by(late_ms))

        def issue(config: Config) -> tuple[ready.Heads, ready.Ahead]:
            source = tr if serializable else tr.snapshot
            heads = ready.Heads(source, self._keys, config.generations, end=end, limit=n)
            return heads, ready.Ahead(tr.snapshot, self._keys, config.generations)

        config, (heads, ahead) = self._with_config(tr, issue)
        if config.pause is not None and config.pause.holds(now_ms):
            raise QueuePaused(_paused(config, config.pause))
        tried = ahead.tried()
        if late_ms is not None:
            due_ms = ahead.next_due_ms()
            if (due_ms is not None and due_ms <= late_ms) or (expired is not None and expired.wait() is not None):
                return config, None
        entries = heads.wait()
        if not entries:
            ready.note_drift(tr, self._keys, config)
        return config, ready.with_attempts(tr.snapshot, self._keys, config, entries) if tried else entries

    def _punctually(self, now_ms: int, take: Callable[[Transaction, int | None], T | None]) -> T:
        """Take in a transaction of its own; before it, do some of what should have been done long ago.

        Only some: whoever else takes now does others, and the sweep all of it.
        """
        late_ms = now_ms - _LATE_MS
        taken = self._backing.kv.transact(lambda tr: take(tr, late_ms))
        if taken is None:
            self._backing.kv.transact(lambda tr: self._catch_up(tr, now_ms=now_ms, late_ms=late_ms))
            taken = self._backing.kv.transact(lambda tr: take(tr, None))
            assert taken is not None
        return taken

    def _catch_up(self, tr: Transaction, *, now_ms: int, late_ms: int) -> None:
        """Promote a few delayed items that are late, and end a few leases that have expired."""
        config = self._current(tr)
        delayed.promote_due(tr, self._keys, config, until_ms=late_ms, limit=_WINDOW, few=_FEW)
        leased.expire_due(tr, self._keys, config, until_ms=now_ms, limit=_FEW, budget=delayed.BUDGET)

    def _remove(self, tr: Transaction, item_id: str, verb: str) -> Item | None:
        """Take the one item of this id and count it under `verb`; None when it is not here."""
        rand = ids.parse(item_id)
        config = self._current(tr)
        place = None if rand is None else ready.PlaceRead(tr, self._keys, config.generations, rand).wait()
        entry = None if place is None else ready.entry_at(tr, self._keys, place)
        if entry is None:
            return None
        tally = Tally(self._keys, wake=False)
        (item,) = ready.take(tr, self._keys, config, [entry], self._backing.now_ms(), tally, verb=verb)
        tally.apply(tr)
        return item

    def _peek(self, end: End, tr: ReadTransaction | None) -> Item | None:
        def look(tr: ReadTransaction) -> Item | None:
            config, (heads, ahead) = self._with_config(
                tr,
                lambda config: (
                    ready.Heads(tr, self._keys, config.generations, end=end, limit=1),
                    ready.Ahead(tr, self._keys, config.generations),
                ),
            )
            entries = heads.wait()
            if ahead.tried():
                entries = ready.with_attempts(tr, self._keys, config, entries)
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

    def _own(self, why: str) -> None:
        """Raise `NotForAttached` when others write the items as well."""
        if self.attached:
            raise NotForAttached(self.name, why)

    def _require(self, kind: Kind, verb: str, instead: str) -> None:
        if self.kind != kind:
            raise WrongKind(f"{display_name(self.name)} is a {self.kind} queue: it has no {verb}, use {instead}.")


def check_number(n: int) -> None:
    """Raise `TooLarge` for a number of items that no transaction takes."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= ready.MAX_ITEMS:
        raise TooLarge("One transaction takes 1 to 1,000 items.")


def check_limit(limit: int) -> None:
    """Raise `TooLarge` for a number of items that no page has."""
    if not 1 <= limit <= MAX_PAGE:
        raise TooLarge(f"A page has 1 to {MAX_PAGE:,} items.")


def _paused(config: Config, pause: Pause) -> str:
    by = f" by {pause.by}" if pause.by else ""
    return f"{display_name(config.name)} is paused{by}: {pause.reason}"
