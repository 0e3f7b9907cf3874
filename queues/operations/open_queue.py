"""One open queue: its id, its keys, its config as last read, and how requests to it are executed.

A request describes one verb: an immutable, serializable value with the queue's id and normalized arguments. Ids and
times are part of it; those that are left open are chosen for all of a batch, before its transaction, by `prepare`. A
function that `executes` it takes a batch of such requests in one transaction; nothing else knows how the verb works.

An open queue holds the queue's id, so it survives a rename. It also remembers the config as a guess: the config is read
in every transaction together with the data, and the guess is only used when the bytes are the same.
"""

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from queues.context import StoreContext
from queues.errors import BadLimit, BadValue, NotForAttached, QueueNotFound, WrongKind, display_name
from queues.items import ready
from queues.keys.queue_keys import AttachedKeys, QueueKeys
from queues.kv.port import ReadTransaction, Refused, Transaction
from queues.model.config import Config, Kind
from queues.serving.batch import Batch, Execution

T = TypeVar("T")
A = TypeVar("A")
#: Characters of a worker's name that are kept.
MAX_WORKER = 200
#: Items of a page, and of one sweep's transaction.
MAX_PAGE = 1_000


def process_name(host: str, pid: int) -> str:
    """Return the name of a process and its machine, by which it takes items."""
    return f"{host}:{pid}"[:MAX_WORKER]


class Request(Struct, Generic[A], frozen=True, gc=False, tag=True, array_like=True):
    """What a caller asks of one queue; `A` is the answer."""

    queue_id: int


Execute = Callable[["OpenQueue", Transaction, Sequence[Any]], Sequence[Any]]
#: Chooses the ids and times that requests leave open.
Prepare = Callable[["OpenQueue", Sequence[Any]], Sequence[Any]]


_executions: dict[tuple[type[Request[Any]], bool], Execution] = {}


def executes(
    *kinds: type[Request[Any]],
    attached: bool = False,
    contended: bool = False,
    batch: Callable[..., Batch] = Batch,
    prepare: Prepare | None = None,
) -> Callable[[Execute], Execute]:
    """Register the function that executes requests of these kinds, of this store's own queues or of attached ones."""

    def register(run: Execute) -> Execute:
        execution = Execution(run=run, contended=contended, batch=batch, prepare=prepare)
        _executions.update(dict.fromkeys([(kind, attached) for kind in kinds], execution))
        return run

    return register


_Read = TypeVar("_Read", bound=Callable[..., Any])
_reads: dict[tuple[type[Request[Any]], bool], Callable[..., Any]] = {}


def reads(kind: type[Request[Any]], *, attached: bool = False) -> Callable[[_Read], _Read]:
    """Register the function that answers requests of this kind, which change nothing: `read(tr, queue, request)`."""

    def register(read: _Read) -> _Read:
        _reads[kind, attached] = read
        return read

    return register


class OpenQueue:
    """One queue as this process sees it. Thread-safe."""

    #: Seconds for which the server of a remote store waits for items at once; 0: this process waits.
    longest_poll = 0.0

    __slots__ = (
        "batches",
        "config_key",
        "consumption",
        "context",
        "foreign",
        "guess",
        "id",
        "item_size",
        "keys",
        "taker",
    )

    def __init__(self, context: StoreContext, config: Config) -> None:
        self.context = context
        self.id = config.id
        self.keys = context.keyspace.queue(config.id)
        self.config_key = context.keyspace.configs.key(config.id)
        #: The keys of the items of an attached queue.
        self.foreign = None if config.prefix is None else AttachedKeys(config.prefix)
        #: The config's bytes, the config, and what was prepared for it: replaced as one, so that threads never mix two.
        self.guess: tuple[bytes, Config, dict[Any, Any]] = (config.encode(), config, {})
        #: What counts what this process takes.
        self.consumption = context.presence.of(config.id)
        #: The name of what takes: of leases of workers without another, and of pops for records of finished items.
        self.taker = process_name(socket.gethostname(), os.getpid())
        #: Bytes of an item, guessed from those taken last.
        self.item_size = 100
        #: What executes requests together, by their kind, as far as it was asked for: see `batch`.
        self.batches: dict[type[Request[Any]], Batch] = {}

    @property
    def config(self) -> Config:
        """The config, as last read."""
        return self.guess[1]

    # Requests

    def send(self, request: Request[A], tr: Transaction | None = None) -> A:
        """Have a request executed in this transaction, or in one of its own with those of concurrent callers."""
        if tr is None:
            answer: A = self.context.kv.serve(self.batch(type(request)), request)
            return answer
        batch = self.batch(type(request))
        if getattr(tr, "set", None) is None:
            raise BadValue("tr= is a transaction that writes, of transact(): not {type}.", type=type(tr).__name__)
        (executed,) = batch.execute(tr, batch.prepare([request]))
        if type(executed) is Refused:
            raise executed.error
        done: A = executed
        return done

    def look(
        self, request: Request[A], tr: ReadTransaction | None = None, *, background: bool = False, **local: Any
    ) -> A:
        """Have a request answered that changes nothing; `local` is what no other process can be asked for."""
        read = _reads[type(request), self.foreign is not None]
        if tr is not None:
            answer: A = read(tr, self, request, **local)
        else:
            answer = self.context.kv.read(lambda tr: read(tr, self, request, **local), background=background)
        return answer

    def prepare(self, config: Config, make: Callable[[QueueKeys, Config], T]) -> T:
        """Return what `make` prepares for this config; it is made once."""
        guess = self.guess
        prepared = guess[2] if guess[1] is config else {}
        made: T | None = prepared.get(make)
        if made is None:
            made = prepared[make] = make(self.keys, config)
        return made

    def batch(self, kind: type[Request[Any]]) -> Batch:
        """Return what executes concurrent requests of this kind together, for all handles of the queue."""
        batch = self.batches.get(kind)
        if batch is None:
            execution = _executions[kind, self.foreign is not None]
            batch = self.batches[kind] = self.context.batches.of(
                (self.id, execution.run), lambda: execution.batch(self, execution)
            )
        return batch

    # The config

    def current(self, tr: ReadTransaction) -> Config:
        """Return the config as this transaction sees it; raise `QueueNotFound`."""
        return self.settle(tr.get(self.config_key).wait())

    def with_config(self, tr: ReadTransaction, issue: Callable[[Config], T]) -> tuple[Config, T]:
        """Read the config together with what `issue` reads by the guess. Issue again when the guess was wrong."""
        read = tr.get(self.config_key)
        guess = self.guess[1]
        issued = issue(guess)
        config = self.settle(read.wait())
        return (config, issued) if config is guess else (config, issue(config))

    def settle(self, record: bytes | None) -> Config:
        """Return the config of a record that was read, and keep it as the guess."""
        guess = self.guess
        if record is None:
            raise QueueNotFound(guess[1].name, gone=True)
        if record != guess[0]:
            self.guess = guess = (record, Config.of(guess[1].name, record), {})
        return guess[1]

    # Checks

    def check_own(self, why: str) -> None:
        """Raise `NotForAttached` when other programs write the items as well."""
        if self.foreign is not None:
            raise NotForAttached(self.config.name, why)

    def check_kind(self, kind: Kind, verb: str, instead: str) -> None:
        """Raise `WrongKind` unless this is a queue of this kind."""
        config = self.guess[1]
        if config.kind != kind:
            raise WrongKind(
                "{queue} is a {kind} queue: it has no {verb}, use {instead}.",
                queue=display_name(config.name),
                kind=config.kind,
                verb=verb,
                instead=instead,
            )


def check_number(n: int) -> None:
    """Raise `BadLimit` for a number of items that no transaction takes."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= ready.MAX_ITEMS:
        raise BadLimit("One transaction takes 1 to 1,000 items.")


def check_preview(preview: int | None) -> None:
    """Raise `BadLimit` for what is no number of bytes to which values are cut."""
    if preview is not None and (isinstance(preview, bool) or not isinstance(preview, int) or preview < 0):
        raise BadLimit("A preview has a whole number of bytes, 0 or more, or is None.")


def check_limit(limit: int) -> None:
    """Raise `BadLimit` for a number of items that no page has."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise BadLimit("A page has 1 to {most:,} items.", most=MAX_PAGE)
