"""The handle of one queue: its identity, its config as a guess, and what the verbs are made of.

A handle holds the queue's id, so it survives a rename. It also remembers the config as a guess: the config is read
in every transaction together with the data, and the guess is only used when the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from queues import ids, ready
from queues.backing import Backing
from queues.config import Config, Kind, Pause
from queues.cursor import End
from queues.errors import QueueClosed, QueueNotFound, QueuePaused, TooLarge, WrongKind
from queues.item import Item
from queues.kv.port import ReadTransaction, Transaction
from queues.names import display_name
from queues.priority import Priority, PriorityType
from queues.tally import wake

T = TypeVar("T")


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
            config = self._current(tr)
            if config.closed:
                raise QueueClosed(f"Pushing to {display_name(config.name)} is closed.")
            return ready.insert(tr, self._keys, config, values, rands)

        return self._backing.transact(write, tr)

    def _rands(self, values: Sequence[tuple[bytes, Priority | None]]) -> list[bytes]:
        """Return a new id for each value; raise `TooLarge` for more than one transaction takes."""
        if len(values) > ready.MAX_ITEMS or sum(len(value) for value, _ in values) > ready.MAX_BYTES:
            raise TooLarge("One transaction pushes at most 1,000 items and 5 MB; push them in parts.")
        return self._backing.minter.mint_many(len(values)) if values else []

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

    def _remove(self, tr: Transaction, item_id: str, verb: str) -> Item | None:
        """Take the one item of this id and count it under `verb`; None when it is not here."""
        rand = ids.parse(item_id)
        config = self._current(tr)
        place = None if rand is None else tr.get(self._keys.index("ready", rand)).wait()
        entry = None if place is None else ready.entry_at(tr, self._keys, place)
        if entry is None:
            return None
        return ready.take(tr, self._keys, config, [entry], self._backing.now_ms(), verb=verb)[0]

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


def _paused(config: Config, pause: Pause) -> str:
    by = f" by {pause.by}" if pause.by else ""
    return f"{display_name(config.name)} is paused{by}: {pause.reason}"
