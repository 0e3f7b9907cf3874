"""Queue catalog: creates, opens, attaches, renames, deletes and restores the queues of one store."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal, TypedDict, Unpack, overload

from queues.catalog import directory
from queues.context import StoreContext
from queues.errors import BadLimit, NotForAttached, QueueNotFound, WrongKind, display_name
from queues.kv.port import ReadTransaction, Transaction
from queues.model.codec import CodecName
from queues.model.config import Config
from queues.model.item import Item
from queues.model.priority import Priority
from queues.queue import AnyQueue, FifoQueue, PriorityQueue, open_queue
from queues.trash.trash import Trash


class OfAnyKind(TypedDict, total=False):
    """Options of a new queue of either kind."""

    codec: CodecName
    exist_ok: bool


class OfPriorities(OfAnyKind, total=False):
    """Options of a new priority queue."""

    priority_type: str
    bands: Sequence[Priority] | None


class QueueCatalog:
    """The queues of one store, by name. Thread-safe."""

    def __init__(self, context: StoreContext, *, trash: Trash | None = None) -> None:
        #: The parts of the open store: for tools and tests, not for programs.
        self.context = context
        self._trash = trash or Trash(context)
        #: Opens what is stored under a name, once for the same record: the API does so for each request.
        self._opened = lru_cache(1_000)(lambda name, record: open_queue(context, Config.of(name, record)))

    @overload
    def create_queue(
        self,
        name: str,
        *,
        kind: Literal["priority"] = ...,
        tr: Transaction | None = ...,
        **options: Unpack[OfPriorities],
    ) -> PriorityQueue: ...

    @overload
    def create_queue(
        self, name: str, *, kind: Literal["fifo"], tr: Transaction | None = ..., **options: Unpack[OfAnyKind]
    ) -> FifoQueue: ...

    @overload
    def create_queue(
        self, name: str, *, kind: str, tr: Transaction | None = ..., **options: Unpack[OfPriorities]
    ) -> AnyQueue: ...

    def create_queue(
        self,
        name: str,
        *,
        kind: str = "priority",
        priority_type: str = "int",
        bands: Sequence[Priority] | None = None,
        codec: CodecName = "bytes",
        exist_ok: bool = False,
        tr: Transaction | None = None,
    ) -> AnyQueue:
        """Create a queue of kind `priority` (priorities of type int, float or str) or `fifo`.

        `bands` are the edges of the priority mix, at most 15. `codec` says what values are: `bytes`, `text` (str),
        `json` or `msgpack` (what msgspec encodes, nested at most 200 levels deep); it never changes, like the kind. In
        JSON, bytes come back as base64 text, dates and keys of objects as text, tuples and sets as lists.

        Raises `BadCodec`, `BadName`, `BadQueueKind` and `QueueExists`, unless `exist_ok` and the queue that is there is
        of the same kind, type, codec and (when given) bands.
        """
        config = directory.own_config(
            name,
            kind=kind,
            priority_type=priority_type,
            bands=bands,
            codec=codec,
            created_ms=self.context.clock.now_ms(),
        )

        def write(tr: Transaction) -> Config:
            any_bands = bands is None
            return directory.create(tr, self.context.keyspace, config, exist_ok=exist_ok, any_bands=any_bands)

        return open_queue(self.context, self.context.transact(write, tr))

    def attach(
        self,
        name: str,
        *,
        prefix: bytes | tuple[Any, ...],
        kind: str = "priority",
        priority_type: str = "int",
        codec: CodecName = "bytes",
        tr: Transaction | None = None,
    ) -> AnyQueue:
        """Attach the items under a prefix as a queue. Other programs write them by FoundationDB's recipes.

        `kind` says by which recipe, `priority_type` what pushes through this store take (any priority is read), `codec`
        how values are decoded. Raises `BadPrefix`, `PrefixTaken` (it overlaps keys of this store or of another attached
        queue), `BadCodec` and `QueueExists`.
        """
        config = directory.attached_config(
            name,
            prefix=prefix,
            root=self.context.keyspace.root,
            kind=kind,
            priority_type=priority_type,
            codec=codec,
            created_ms=self.context.clock.now_ms(),
        )
        return open_queue(
            self.context, self.context.transact(lambda tr: directory.attach(tr, self.context.keyspace, config), tr)
        )

    def detach(self, name: str, *, tr: Transaction | None = None) -> None:
        """Forget an attached queue; its items stay where they are. Raises `QueueNotFound`, `NotAttached`."""
        with self.suggesting(tr):
            self.context.transact(lambda tr: directory.detach(tr, self.context.keyspace, name), tr)

    def queue(self, name: str, *, tr: ReadTransaction | None = None) -> AnyQueue:
        """Return the queue of this name, of either kind; raise `QueueNotFound`.

        Outside a transaction the error suggests names that look alike. For a type checker that knows the verbs of one
        kind, use `priority_queue` or `fifo_queue`.
        """
        with self.suggesting(tr):
            record = self.context.read(lambda tr: directory.find_record(tr, self.context.keyspace, name), tr)
            queue = self._opened(name, record)
            queue.opened.settle(record)  # a verb may have seen another record since
            return queue

    def priority_queue(self, name: str, *, tr: ReadTransaction | None = None) -> PriorityQueue:
        """Return the priority queue of this name; raise `QueueNotFound`, and `WrongKind` for a FIFO queue."""
        queue = self.queue(name, tr=tr)
        if isinstance(queue, PriorityQueue):
            return queue
        raise WrongKind("{queue} is a fifo queue, not a priority queue.", queue=display_name(queue.name))

    def fifo_queue(self, name: str, *, tr: ReadTransaction | None = None) -> FifoQueue:
        """Return the FIFO queue of this name; raise `QueueNotFound`, and `WrongKind` for a priority queue."""
        queue = self.queue(name, tr=tr)
        if isinstance(queue, FifoQueue):
            return queue
        raise WrongKind("{queue} is a priority queue, not a fifo queue.", queue=display_name(queue.name))

    def queues(
        self,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int = 100,
        tr: ReadTransaction | None = None,
    ) -> list[AnyQueue]:
        """Return the queues with names that begin with `prefix`, by name. At most `limit`: 1 to 1,000.

        `after` is the last name of the page before.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1_000:
            raise BadLimit("A page has 1 to 1,000 queues.")

        def look(tr: ReadTransaction) -> list[AnyQueue]:
            found = directory.names(tr, self.context.keyspace, prefix=prefix, after=after, limit=limit)
            reads = [(name, tr.get(self.context.keyspace.configs.key(queue_id))) for name, queue_id in found.items()]
            configs = [Config.of(name, record) for name, read in reads if (record := read.wait()) is not None]
            return [open_queue(self.context, config) for config in configs]

        return self.context.read(look, tr)

    def directory(self, *, tr: ReadTransaction | None = None) -> Mapping[str, int]:
        """Return every queue's id by name, in the order of names."""
        return self.context.read(lambda tr: directory.names(tr, self.context.keyspace), tr)

    def rename_queue(self, old: str, new: str, *, tr: Transaction | None = None) -> AnyQueue:
        """Give a queue another name; open queues go on, and items stay. Raises `QueueNotFound`, `QueueExists`."""

        def write(tr: Transaction) -> Config:
            return directory.rename(tr, self.context.keyspace, directory.find(tr, self.context.keyspace, old), new)

        with self.suggesting(tr):
            return open_queue(self.context, self.context.transact(write, tr))

    def delete_queue(self, name: str, *, by: str = "", tr: Transaction | None = None) -> str:
        """Put a queue with all its items into the trash. Return the trash id, for `restore`.

        Costs the same at any depth. Open queues of it raise `QueueNotFound` until it is restored. An attached queue's
        items are not ours to delete: `NotForAttached`.
        """
        trash_id = self.context.id_generator.new_id()

        def write(tr: Transaction) -> str:
            queue = self.queue(name, tr=tr)
            config = queue.config
            if config.attached:
                raise NotForAttached(config.name, "detach it instead, its items stay where they are.")
            # The depth is only recorded, so a snapshot read conflicts with no push or pop.
            self._trash.put_queue(tr, trash_id, config, depth=queue.depth(tr=tr.snapshot), by=by)
            directory.remove(tr, self.context.keyspace, config)
            return trash_id.hex()

        with self.suggesting(tr):
            return self.context.transact(write, tr)

    @contextmanager
    def suggesting(self, tr: ReadTransaction | None = None) -> Iterator[None]:
        """Let a `QueueNotFound` that leaves this block name queues that look alike. Not inside a transaction `tr`."""
        try:
            yield
        except QueueNotFound as error:
            if tr is not None or error.suggestions or not error.suggests:
                raise
            name = error.name
            near = self.context.kv.read(lambda tr: directory.look_alikes(tr, self.context.keyspace, name))
            raise QueueNotFound(name, near) from None

    def restore(self, trash_id: str, *, tr: Transaction | None = None) -> AnyQueue | Item:
        """Bring back from the trash a queue under its name, or items under their keys.

        Returns the item, or the queue that came back or that holds what came back. Of a push in a browser, the items
        are moved into the trash. Raises `TrashNotFound`, `AlreadyRestored`, `QueueExists` (the name is taken),
        `QueueNotFound` (the item's queue is gone), `PlaceTaken`.
        """
        into = self.context.id_generator.new_id()
        restored = self.context.transact(lambda tr: self._trash.restore(tr, trash_id, into=into), tr)
        return restored.item if restored.item is not None else open_queue(self.context, restored.config)
