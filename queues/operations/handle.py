"""The handle of one queue: its identity, its config as a guess, and what the verbs are made of.

A handle holds the queue's id, so it survives a rename. It also remembers the config as a guess: the config is read
in every transaction together with the data, and the guess is only used when the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from queues.context import StoreContext
from queues.errors import BadLimit, NotForAttached, QueueNotFound, TooLarge, WrongKind, display_name
from queues.items import admission, ready
from queues.items.counters import CounterDelta, wake
from queues.kv.port import ReadTransaction, Transaction
from queues.model import cursor as cursors
from queues.model import ids
from queues.model.config import Config, Kind, Pause
from queues.model.cursor import End
from queues.model.item import Item, Page
from queues.model.priority import Priority, PriorityType
from queues.serving.lease_batch import Errand, Errands
from queues.serving.push_batch import Push, Pushes

T = TypeVar("T")
#: Items of a page, and of one sweep's transaction.
MAX_PAGE = 1_000


class Handle:
    """One queue by its id, and what its verbs are made of. Thread-safe."""

    def __init__(self, context: StoreContext, config: Config) -> None:
        self._context = context
        self._keys = context.keyspace.queue(config.id)
        self._config_key = context.keyspace.config(config.id)
        #: (bytes, decoded): replaced as one, so that threads never mix two configs.
        self._guess: tuple[bytes, Config] = (config.encode(), config)
        self._own_pushes: Pushes | None = None

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
    def codec(self) -> str:
        """`bytes`, `text`, `json` or `msgpack`; fixed when the queue is created or attached."""
        return self._guess[1].codec

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
        return pause if pause is not None and pause.holds(self._context.now_ms()) else None

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

        guess = self._context.transact(write, tr)
        if tr is None:
            self._guess = guess

    def _insert(self, values: Sequence[tuple[bytes, Priority | None]], tr: Transaction | None) -> list[Item]:
        rands = self._rands(values)
        if not rands:
            return []

        push = Push(values, rands)
        if tr is None:
            pushed: Any = self._context.kv.serve(self._pushes, push)
            return pushed  # type: ignore[no-any-return]
        (items,) = self._pushes.serve(tr, [push])
        return items  # type: ignore[return-value]  # a push alone is never answered with a refusal: it raises

    @property
    def _pushes(self) -> Pushes:
        pushes = self._own_pushes
        if pushes is None:
            new_id = self._context.id_generator.new_ids
            pushes = self._context.servers.of((self.id, "push"), lambda: Pushes(self._keys, self._current, new_id))
            self._own_pushes = pushes
        return pushes

    def _state_page(
        self,
        state: cursors.List,
        look: Callable[[ReadTransaction, Config, bytes | None, int], list[tuple[bytes, Item]]],
        *,
        limit: int,
        after: str | None,
        tr: ReadTransaction | None,
    ) -> Page:
        """Return a page of items of a state; `look` returns so many behind a place, each with its own place."""
        check_limit(limit)
        behind = None if after is None else cursors.decode(after, self.id, state)

        def read(tr: ReadTransaction) -> Page:
            found = look(tr, self._current(tr), behind, limit + 1)
            shown = found[:limit]
            more = len(found) > limit
            return Page(
                items=tuple(item for _, item in shown),
                cursor=cursors.encode(self.id, state, shown[-1][0]) if more else None,
            )

        return self._context.read(read, tr)

    def _admit(self, tr: Transaction, config: Config, values: Sequence[tuple[bytes, Priority | None]]) -> None:
        """Raise `QueueClosed`, `QueueFull`, `ValueTooLarge` when these may not come in."""
        admission.admit(tr, self._keys, config, (len(value) for value, _ in values))

    def _run(self, errand: Errand, tr: Transaction | None) -> Any:
        """Run an errand in the caller's transaction, or together with those of others."""
        if tr is None:
            return self._context.kv.serve(self._errands, errand)
        (answer,) = self._errands.serve(tr, [errand])
        return answer

    @property
    def _errands(self) -> Errands:
        return self._context.servers.of((self.id, "errand"), lambda: Errands(self._keys, self._current))

    def _rands(self, values: Sequence[tuple[bytes, Priority | None]]) -> list[bytes]:
        """Return a new id for each value; raise `TooLarge` for more than one transaction takes."""
        if len(values) > ready.MAX_ITEMS or sum(map(len, map(itemgetter(0), values))) > ready.MAX_BYTES:
            raise TooLarge("One transaction pushes at most 1,000 items and 5 MB; push them in parts.")
        return self._context.id_generator.new_ids(len(values)) if values else []

    def _remove(self, tr: Transaction, item_id: str, verb: str) -> Item | None:
        """Take the one item of this id and count it under `verb`; None when it is not here."""
        rand = ids.parse(item_id)
        config = self._current(tr)
        place = None if rand is None else ready.PlaceRead(tr, self._keys, config.generations, rand).wait()
        entry = None if place is None else ready.entry_at(tr, self._keys, place)
        if entry is None:
            return None
        delta = CounterDelta(self._keys, wake=False)
        (item,) = ready.take(tr, self._keys, config, [entry], self._context.now_ms(), delta, verb=verb)
        delta.apply(tr)
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

        return self._context.read(look, tr)

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
            self._guess = guess = (record, Config.of(guess[1].name, record))
        return guess[1]

    def _own(self, why: str) -> None:
        """Raise `NotForAttached` when others write the items as well."""
        if self.attached:
            raise NotForAttached(self.name, why)

    def _require(self, kind: Kind, verb: str, instead: str) -> None:
        if self.kind != kind:
            raise WrongKind(
                "{queue} is a {kind} queue: it has no {verb}, use {instead}.",
                queue=display_name(self.name),
                kind=self.kind,
                verb=verb,
                instead=instead,
            )


def check_number(n: int) -> None:
    """Raise `BadLimit` for a number of items that no transaction takes."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= ready.MAX_ITEMS:
        raise BadLimit("One transaction takes 1 to 1,000 items.")


def check_limit(limit: int) -> None:
    """Raise `BadLimit` for a number of items that no page has."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise BadLimit("A page has 1 to {most:,} items.", most=MAX_PAGE)
