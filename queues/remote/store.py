"""Remote stores: the queues of a site, by its HTTP API."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import httpx

from queues.actions.actions import Actions
from queues.actions.audited_action import RequestKey
from queues.catalog import directory
from queues.consumers.consumer import Client
from queues.consumers.presence import Consumption, Presence
from queues.context import StoreContext
from queues.errors import (
    AnswerLost,
    BadLimit,
    BadName,
    NotPermitted,
    QueueError,
    QueueExists,
    QueueNotFound,
    QueueUnreadable,
    StoreError,
    TrashNotFound,
    Words,
)
from queues.keys.keyspace import Keyspace
from queues.kv.boottime import boottime
from queues.kv.port import ReadTransaction, Transaction
from queues.model import ids
from queues.model.codec import CodecName
from queues.model.duration import TIMEOUT, Duration, seconds_of
from queues.model.ids import IdGenerator
from queues.model.item import Item
from queues.model.names import canonical, check_name
from queues.model.priority import Priority
from queues.model.store_address import StoreAddress
from queues.operations.wait import Outlook
from queues.queue import AnyQueue, Queue, queue_of
from queues.remote import reads
from queues.remote.actions import RemoteActions
from queues.remote.call import Call
from queues.remote.connection import Connection
from queues.remote.delivery import Delivery, RemoteQueue, description_call, outlook, refuse
from queues.remote.records import RemoteAudit, RemoteTargets
from queues.remote.shapes import config_of
from queues.remote.site_client import PAGE, RemoteSite
from queues.serving.background import BackgroundThreads
from queues.serving.clock import GivenClock
from queues.status.attached_counts import AttachedCounts
from queues.store import Store

#: Seconds for which opening waits for a server that does not answer.
OPENING = 5.0


def open_remote(
    url: str,
    *,
    token: str | None,
    timeout: Duration,
    transport: httpx.AsyncBaseTransport | None = None,
    clock: Callable[[], float] | None = None,
    elapsed: Callable[[], float] = boottime,
) -> "RemoteStore":
    """Open the store of the site at a URL; raise `BadStoreURL`, `ServerUnreachable`, `NotAuthenticated`.

    The last three are for tests.
    """
    seconds = seconds_of(timeout, TIMEOUT)
    connection = Connection(url, token=token, timeout=seconds, transport=transport, elapsed=elapsed)
    try:
        about = connection.call(Call(method="GET", path=("store",)), timeout=min(OPENING, seconds))
        store = RemoteStore(connection, url=url, about=about, clock=clock or connection.clock)
        if transport is None:
            store.address = StoreAddress(url=url, root=("pq",), max_bytes=None, token=token)
        return store
    except BaseException:
        connection.close()
        raise


class _Untold(Consumption):
    """Counts nothing: the server counts what this process takes."""

    def took(self, n: int) -> None:
        """Count nothing."""

    def leased(self, held: Mapping[bytes, int], worker: str | None) -> None:
        """Count nothing."""


class _NoPresence(Presence):
    """Writes no heartbeats of consumers: the server does."""

    def of(self, queue_id: int, client: Client | None = None) -> Consumption:
        """Return what counts nothing."""
        return _Untold(queue_id, self._clock, lambda _: None)


class RemoteStore(Store):
    """The store of a site. Thread-safe; its verbs are executed by the site, with the rights of the token."""

    tended = False

    def __init__(
        self, connection: Connection, *, url: str, about: Mapping[str, Any], clock: Callable[[], float]
    ) -> None:
        self._connection = connection
        self.clock = None
        kv, keyspace, threads = Delivery(connection), Keyspace(("pq",)), BackgroundThreads()
        context = StoreContext(
            kv=kv,
            keyspace=keyspace,
            id_generator=IdGenerator(clock),
            clock=GivenClock(clock),
            counts=AttachedCounts(kv, keyspace, clock),
            presence=_NoPresence(kv, keyspace, clock, threads),
            background_threads=threads,
        )
        self._assemble(context, url)
        self.site = RemoteSite(connection)
        self.audit = RemoteAudit(context, connection)
        self.targets = RemoteTargets(context, connection)
        self.id = about["id"]
        self.verbs = tuple(about["verbs"])
        self.caller = about["caller"]

    def actions(
        self,
        actor: str,
        *,
        via: str = "web",
        keep: Duration | None = None,
        tr: Transaction | None = None,
        key: RequestKey | None = None,
    ) -> Actions:
        """Return the actions that the HTTP API has. The site records them under the name of the token."""
        if tr is not None or key is not None:
            refuse()
        return RemoteActions(self.context, self._connection, self, actor=actor, via=via, keep=keep)

    # Queues

    def create_queue(  # type: ignore[override] # one signature for its overloads
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
        """Create a queue: see `Store.create_queue`."""
        wanted = directory.own_config(
            name, kind=kind, priority_type=priority_type, bands=bands, codec=codec, created_ms=0
        )
        body: dict[str, Any] = {"name": name, "kind": kind, "priority_type": priority_type, "codec": codec}
        if bands is not None:
            body["bands"] = list(bands)
        try:
            made = self._write("POST", "queues", body=body, tr=tr)
        except QueueExists:
            if not exist_ok:
                raise
            there = self.queue(name)
            directory.check_same(there.config, wanted, any_bands=bands is None)
            return there
        return self._made(made, bands=wanted.edges)

    def attach(
        self,
        name: str,
        *,
        prefix: bytes | tuple[Any, ...],
        kind: str = "priority",
        priority_type: str = "int",
        codec: CodecName = "bytes",
        tr: Transaction | None = None,
        reason: str = "",
    ) -> AnyQueue:
        """Attach a subspace as a queue: see `Store.attach`. The site's audit has the reason."""
        directory.own_config(name, kind=kind, priority_type=priority_type, bands=None, codec=codec, created_ms=0)
        options = {"kind": kind, "priority_type": priority_type, "codec": codec}
        body = {"prefix": repr(prefix), "reason": reason, **options}
        return self._made(self._write("POST", "queues", name, "attach", body=body, tr=tr))

    def detach(self, name: str, *, tr: Transaction | None = None) -> None:
        """Forget an attached queue: see `Store.detach`."""
        self._write("POST", "queues", canonical(name), "detach", tr=tr)

    def queue(self, name: str, *, tr: ReadTransaction | None = None) -> AnyQueue:
        """Return the queue of this name; raise `QueueNotFound`."""
        if tr is not None:
            refuse()
        try:
            check_name(name)
        except BadName:  # which has no address
            raise QueueNotFound(name) from None
        return self._open(self._connection.call(description_call(name)))

    def queues(
        self, prefix: str = "", *, after: str | None = None, limit: int = 100, tr: ReadTransaction | None = None
    ) -> list[AnyQueue]:
        """Return queues by name: see `Store.queues`."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1_000:
            raise BadLimit("A page has 1 to 1,000 queues.")
        return [self._open(shape) for shape in self._listed(prefix, after or "", limit, tr)]

    def directory(self, *, tr: ReadTransaction | None = None) -> Mapping[str, int]:
        """Return the id of every visible queue by name."""
        return {shape["queue"]: shape["id"] for shape in self._listed("", "", None, tr)}

    def rename_queue(self, old: str, new: str, *, tr: Transaction | None = None) -> AnyQueue:
        """Give a queue another name; open queues go on, and items stay."""
        return self.actions("", tr=tr).rename_queue(old, new)

    def delete_queue(self, name: str, *, by: str = "", tr: Transaction | None = None) -> str:
        """Put a queue into the trash and return the trash id. The token is the actor."""
        name = canonical(name)
        return str(self._write("DELETE", "queues", name, query={"confirm": name}, tr=tr)["trash_id"])

    def restore(self, trash_id: str, *, tr: Transaction | None = None) -> AnyQueue | Item:
        """Bring back what is in the trash: see `Store.restore`."""
        if ids.parse(trash_id) is None:
            raise TrashNotFound("This is no id of anything in the trash.")
        undone = self._write("POST", "undo", trash_id, tr=tr)
        try:
            queue = self.queue(undone["queue"])
            with suppress(NotPermitted):  # the token may bring back what it may not read
                return queue if undone["item"] is None else queue.find(undone["item"]) or queue
            return queue
        except (QueueError, StoreError) as error:
            raise AnswerLost(
                "This was undone, but what came back cannot be read: {words}", words=error.words
            ) from error

    # Waiting

    def outlooks(self, queues: Sequence[Queue]) -> dict[Queue, Outlook]:
        """Return what there is to take from those of the queues that exist."""
        if not queues:
            return {}
        by_id = {queue.id: queue for queue in queues}
        names = {queue_id: queue.name for queue_id, queue in by_id.items()}
        found = self._connection.thread.run(outlook(self._connection, names, 0.0))
        return {by_id[each["id"]]: reads.outlook_of(by_id[each["id"]].opened, each["ready"]) for each in found}

    # Inside

    def _open(self, shape: Mapping[str, Any]) -> AnyQueue:
        if shape.get("unreadable"):
            raise QueueUnreadable(shape["queue"], Words(shape["unreadable"]))
        return queue_of(RemoteQueue(self.context, config_of(shape)))

    def _made(self, shape: Mapping[str, Any], bands: Sequence[Priority] = ()) -> AnyQueue:
        """Return a queue that was just made, without a read, which may fail."""
        if "id" not in shape:  # by a site of an earlier build
            return self.queue(shape["queue"])
        return self._open({**shape, "bands": bands, "pause": None})

    def _listed(
        self, prefix: str, after: str, limit: int | None, tr: ReadTransaction | None
    ) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        next_: str | None = after
        while next_ is not None and (limit is None or len(found) < limit):
            wanted = PAGE if limit is None else min(PAGE, limit - len(found))
            page = self._read("queues", prefix=prefix, after=next_, limit=wanted, tr=tr)
            found += page["queues"]
            next_ = page["next"]
        return found

    def _read(self, *path: str, tr: ReadTransaction | None, **query: Any) -> Any:
        if tr is not None:
            refuse()
        return self._connection.get(*path, **query)

    def _write(
        self,
        method: str,
        *path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        tr: Transaction | None = None,
    ) -> Any:
        if tr is not None:
            refuse()
        return self._connection.write(method, *path, body=body, query=query)
