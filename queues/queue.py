"""The facade of one queue for threads.

Each verb builds a request and has it executed in one transaction; given `tr=` it joins that transaction instead and
takes effect when that one commits.
"""

from collections.abc import Callable, Iterable
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack

from queues.consumers.consumer import Client, Consumers
from queues.context import StoreContext
from queues.errors import BadTime
from queues.items.scan import Query
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config, Kind, Pause
from queues.model.cursor import End
from queues.model.duration import LEASE, Duration, Wait, seconds_of
from queues.model.item import Item, Page
from queues.model.moment import When, due_ms, either
from queues.model.priority import Priority, PriorityType
from queues.model.settings import Settings
from queues.operations import attached
from queues.operations.configure import configure_request, pause_request, resume_request
from queues.operations.finished import FindFinishedRequest, finished_page_request
from queues.operations.lease import Lease, as_leases, expire_request, extended, lease_request, leasing_end
from queues.operations.lease_block import QueueBinding
from queues.operations.measure import ConsumersRequest, OldestRequest, StatusRequest, TotalsRequest, depth_request
from queues.operations.open_queue import MAX_WORKER, OpenQueue, Request, check_limit, check_preview, process_name
from queues.operations.peek import PeekManyRequest, check_end, page_request, peek_many_request, state_page_request
from queues.operations.pop import PopRequest, RemoveRequest, pop_request, waiting
from queues.operations.promote import PromoteRequest, RescheduleRequest
from queues.operations.push import enqueue_many_request, push_many_request, push_request
from queues.operations.retry_dead import DeleteDeadRequest, RetryDeadRequest
from queues.operations.search import FindRequest, Found, checked_query, search_request
from queues.operations.settle import (
    NO_LEASES,
    ack_request,
    extend_request,
    release_request,
    settled,
    stale,
    stale_tokens,
)
from queues.operations.wait import Outlook, OutlookRequest, tend, wait_for
from queues.status.status import QueueStatus, Totals

A = TypeVar("A")
#: Why attached queues have no verbs of delayed and dead items.
_NEVER_DELAYED, _NEVER_DEAD = "its items are never delayed.", "its items are never dead."
_NEVER_FINISHED = "other programs take its items."


#: For each verb of one kind only: its kind, and the words that tell a queue of the other kind what to use instead.
_VERBS: dict[str, tuple[Kind, str, str]] = {
    "push": ("priority", "push", "enqueue"),
    "push_many": ("priority", "push", "enqueue"),
    "pop_min": ("priority", "pop", "dequeue"),
    "pop_max": ("priority", "pop", "dequeue"),
    "pop_many": ("priority", "pop", "dequeue"),
    "peek_min": ("priority", "peek_min", "peek"),
    "peek_max": ("priority", "peek_max", "peek"),
    "enqueue": ("fifo", "enqueue", "push"),
    "enqueue_many": ("fifo", "enqueue", "push"),
    "dequeue": ("fifo", "dequeue", "pop"),
    "dequeue_many": ("fifo", "dequeue", "pop"),
    "peek": ("fifo", "peek", "peek_min"),
}


class Queue:
    """A named, durable queue: the verbs that `PriorityQueue` and `FifoQueue` have in common. Thread-safe.

    Its items are this store's own, or lie in a subspace that other programs write (`attached`). A verb of the other
    kind does not type-check, and raises `WrongKind` when it is called.
    """

    def __init__(self, opened: OpenQueue) -> None:
        #: What requests are built for and executed on.
        self.opened = opened
        self._kv = opened.context.kv
        self._batches = self.opened.batches
        self._consumption = self.opened.consumption
        #: What most pops are.
        self._pops = {"min": pop_request(opened, 1, "min", None), "max": pop_request(opened, 1, "max", None)}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.kind}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., None]:
            """Return what raises `WrongKind` for a verb of the other kind."""
            return verb_of_other_kind(self, name)

    @property
    def id(self) -> int:
        """The queue's number, the same through renames."""
        return self.opened.id

    @property
    def name(self) -> str:
        """The name, as last read."""
        return self.config.name

    @property
    def kind(self) -> Kind:
        """`priority` or `fifo`."""
        return self.config.kind

    @property
    def priority_type(self) -> PriorityType:
        """`int`, `float` or `str`; without meaning in a FIFO queue."""
        return self.config.priority_type

    @property
    def codec(self) -> str:
        """`bytes`, `text`, `json` or `msgpack`; fixed when the queue is created or attached."""
        return self.config.codec

    @property
    def attached(self) -> bool:
        """Say whether the items lie in a subspace that other programs write."""
        return self.config.attached

    @property
    def config(self) -> Config:
        """The config, as last read."""
        return self.opened.config

    @property
    def pause_state(self) -> Pause | None:
        """The pause, as last read; one that has expired no longer holds."""
        pause = self.config.pause
        return pause if pause is not None and pause.holds(self.opened.context.clock.now_ms()) else None

    # Leasing

    def lease(
        self,
        *,
        seconds: Duration = 60.0,
        end: str = "min",
        worker: str | None = None,
        keep: bool = False,
        wait: Wait = False,
        tr: Transaction | None = None,
    ) -> Lease | None:
        """Hold the item at one end for a time; None when nothing is ready.

        No other caller gets it meanwhile. Acknowledge it with `ack`. An item that is neither acknowledged, released
        nor extended within `seconds` (or a timedelta) returns to its place, or is dead after its last attempt. `end` is
        `min` or `max` (FIFO: `head`). `worker` names the holder, by default this process. `wait` is that of `pop_min`.
        Raises `QueuePaused` if it does not wait, `BadTime`, `BadEnd`, `NotForAttached`.

        A lease is a context manager too: see `Lease`. With `keep` it is extended by `seconds` again and again while
        its block runs.
        """
        leases = self.lease_many(1, seconds=seconds, end=end, worker=worker, keep=keep, wait=wait, tr=tr)
        return leases[0] if leases else None

    def lease_many(
        self,
        n: int,
        *,
        seconds: Duration = 60.0,
        end: str = "min",
        worker: str | None = None,
        keep: bool = False,
        wait: Wait = False,
        tr: Transaction | None = None,
    ) -> list[Lease]:
        """Hold at most `n` items (1 to 1,000, 4 MB) from one end for a time. The first to leave is first.

        Of large items, or items with long logs of attempts, fewer are held at once. With `wait`, it returns as soon as
        there is at least one. The rest is as for `lease`; raises `BadLimit` too.
        """
        opened, side = self.opened, leasing_end(self.opened, end)
        held = seconds_of(seconds, LEASE, above_zero=True)
        binding = QueueBinding(self, seconds=held, keep=keep)

        def take(within: float) -> list[Lease]:
            request = lease_request(opened, n, seconds=held, end=side, worker=worker, tr=tr)
            entries = opened.send(waiting(request, within), tr)
            held_now = {entry.nonce: entry.expires_ms for entry in entries} if tr is None else {}
            self._consumption.leased(held_now, request.worker)
            return as_leases(opened, entries, binding)

        return wait_for(opened, take, list[Lease](), wait, tr)

    def ack(self, lease: Lease | str, *, must_hold: bool = False, tr: Transaction | None = None) -> None:
        """Acknowledge that the leased item is done: it is gone for good. Acknowledging again changes nothing.

        A lease that has expired can be acknowledged as long as nothing else has happened to the item: no other worker
        took it, and it was not changed. Else raises `StaleLease` when the item is still in this queue: another worker
        may work on it. When it is nowhere in this queue any more, this succeeds, and does not tell why: acknowledged
        before, or deleted or moved meanwhile, which can be undone. With `must_hold` it raises `StaleLease` then too,
        so that what the same `tr` does is done once for each item.
        """
        request = ack_request(self.opened, [lease], must_hold=must_hold)
        over = self._send(request, tr)
        settled(self.opened, request.leases)
        if over:
            raise stale()

    def ack_many(self, leases: Iterable[Lease | str], *, tr: Transaction | None = None) -> list[str]:
        """Acknowledge at most 1,000 leases in one transaction. Return the tokens of those that are stale."""
        leases = list(leases)
        request = ack_request(self.opened, leases)
        if not request.leases:
            return []
        over = self._send(request, tr)
        settled(self.opened, request.leases)
        return stale_tokens(over, leases)

    def release(
        self,
        lease: Lease | str,
        *,
        delay: Duration | None = None,
        reason: str = "",
        traceback: str = "",
        count_attempt: bool = True,
        tr: Transaction | None = None,
    ) -> Item:
        """Give a leased item back to its place, now or after a delay. Return the item.

        The item keeps reason and traceback with this attempt; a long traceback loses its middle. After the last
        attempt that the queue allows it is dead, for this reason. Without `count_attempt` this lease is no attempt:
        the item has as many as before it, and is never dead by this. Raises `StaleLease`.
        """
        request = release_request(
            self.opened, lease, delay=delay, reason=reason, traceback=traceback, count_attempt=count_attempt
        )
        settled(self.opened, [request.lease])
        return self._send(request, tr)

    def extend(self, lease: Lease | str, *, seconds: Duration, tr: Transaction | None = None) -> Lease:
        """Let a lease end so many seconds from now, and return it; its token stays. Raises `StaleLease`.

        A lease that is over can be extended until a sweep has ended it.
        """
        entry = self._send(extend_request(self.opened, lease, seconds), tr)
        self._consumption.extended(entry.nonce, entry.expires_ms)
        return extended(self.opened, entry, lease)

    def expire(self, limit: int = 100, *, tr: Transaction | None = None) -> int:
        """End at most `limit` leases (1 to 1,000) that are over by the store's clock. Return their number.

        Items go back to their places, or to the dead after their last attempt. Sweeps call this until it returns 0. A
        call stops early at 1 MB of values.
        """
        return self._send(expire_request(self.opened, limit), tr)

    # Delayed and dead items

    def promote(self, limit: int = 100, *, tr: Transaction | None = None) -> int:
        """Make at most `limit` due items (1 to 1,000) ready, in due order. Return their number.

        Never early by the store's clock. Sweeps call this until it returns 0, and pops for what is late; two at once
        do each item once. A call stops early at 1 MB of values.
        """
        self.opened.check_own(_NEVER_DELAYED)
        check_limit(limit)
        return self._send(PromoteRequest(self.id, limit, self.opened.context.clock.now_ms()), tr)

    def promote_now(self, item_id: str, *, tr: Transaction | None = None) -> Item | None:
        """Make one delayed item ready, due or not, and return it. None when no delayed item has this id."""
        self.opened.check_own(_NEVER_DELAYED)
        request = RescheduleRequest(self.id, item_id, None, self.opened.context.clock.now_ms())
        return self._send(request, tr)

    def reschedule(
        self,
        item_id: str,
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> Item | None:
        """Let a delayed item become ready at another time, now included, and return it. None when none has this id."""
        when = either(delay, due)
        if when is None:
            raise BadTime("Say when the item shall be due: delay= or due=.")
        seconds = self.opened.context.clock()
        self.opened.check_own(_NEVER_DELAYED)
        request = RescheduleRequest(self.id, item_id, due_ms(when, seconds), int(seconds * 1000))
        return self._send(request, tr)

    def retry_dead(self, item_id: str, *, tr: Transaction | None = None) -> Item | None:
        """Return a dead item to its place, with no attempts counted. None when no dead item has this id."""
        self.opened.check_own(_NEVER_DEAD)
        return self._send(RetryDeadRequest(self.id, item_id, self.opened.context.clock.now_ms()), tr)

    def delete_dead(self, item_id: str, *, tr: Transaction | None = None) -> Item | None:
        """Take a dead item out for good, and return it. None when no dead item has this id."""
        self.opened.check_own(_NEVER_DEAD)
        return self._send(DeleteDeadRequest(self.id, item_id), tr)

    # Waiting

    def outlook(self, *, tr: ReadTransaction | None = None) -> Outlook:
        """Return how many items can be taken now, and when that changes by itself."""
        return self.opened.look(OutlookRequest(self.id), tr)

    def wait(self, timeout: Duration) -> bool:
        """Return True as soon as an item can be taken; False after `timeout`. Another caller may take it first."""

        def look(seconds: float) -> bool:
            return self.opened.look(OutlookRequest(self.id, seconds)).ready > 0

        return wait_for(self.opened, look, False, timeout, None)

    def tend(self) -> None:
        """Do some of what is due: make delayed items ready, and end expired leases.

        A caller that does so at the same time finds it done.
        """
        self.opened.check_own(_NEVER_DELAYED)
        tend(self.opened)

    # Looking

    def depth(self, state: str = "ready", *, tr: ReadTransaction | None = None) -> int:
        """Return the exact number of items in a state (ready, delayed, leased, dead), from counters.

        The ready items of an attached queue are counted: the cost grows with the depth. Alone it goes by many short
        reads; with `tr` it is one transaction's reading, five seconds at most.
        """
        if tr is None and self.attached:
            return attached.count(self.opened, state)
        return self.opened.look(depth_request(self.opened, state), tr)

    def totals(self, *, tr: ReadTransaction | None = None) -> Totals:
        """Return the exact depths by state and the traffic, from counters. See `depth` for attached queues."""
        if tr is None and self.attached:
            ready = attached.count(self.opened, "ready")
            return self._kv.read(lambda tr: attached.totals_of(tr, self.opened, ready))
        return self.opened.look(TotalsRequest(self.id), tr)

    def oldest(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item that is ready for longest, from the index by age; see `Item.ready_at`."""
        return self.opened.look(OldestRequest(self.id), tr)

    def peek_many(self, n: int, *, end: str = "min", tr: ReadTransaction | None = None) -> list[Item]:
        """Return at most `n` ready items (1 to 1,000, 5 MB) from one end. All stay; the first to leave is first."""
        return self.opened.look(peek_many_request(self.opened, n, end), tr)

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
        request = page_request(self.opened, end=end, limit=limit, after=after, priority=priority, preview=preview)
        return self.opened.look(request, tr)

    def delayed(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        preview: int | None = None,
        tr: ReadTransaction | None = None,
    ) -> Page:
        """Return a page of delayed items, the next due first, changing nothing.

        `after` is the cursor of the page before; values are cut to `preview` bytes.
        """
        self.opened.check_own(_NEVER_DELAYED)
        return self.opened.look(state_page_request(self.opened, "delayed", limit, after, preview), tr)

    def leased(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        preview: int | None = None,
        tr: ReadTransaction | None = None,
    ) -> Page:
        """Return a page of leased items, the next to expire first, changing nothing.

        `after` is the cursor of the page before; values are cut to `preview` bytes.
        """
        self.opened.check_own(NO_LEASES)
        return self.opened.look(state_page_request(self.opened, "leased", limit, after, preview), tr)

    def dead(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        since: datetime | None = None,
        preview: int | None = None,
        tr: ReadTransaction | None = None,
    ) -> Page:
        """Return a page of dead items, the first to die first, changing nothing.

        `after` is the cursor of the page before; else `since` (an aware datetime) leaves out items that died earlier.
        Values are cut to `preview` bytes.
        """
        self.opened.check_own(_NEVER_DEAD)
        return self.opened.look(state_page_request(self.opened, "dead", limit, after, preview, since), tr)

    def finished(self, *, limit: int = 50, after: str | None = None, tr: ReadTransaction | None = None) -> Page:
        """Return a page of finished items, the newest first: acknowledged or popped.

        None is there of an action of a person: those are in the audit. Records are kept as long as the setting
        `keep_finished` says: at most the newest 10,000, each with the first 256 bytes of its value. `after` is the
        cursor of the page before.
        """
        self.opened.check_own(_NEVER_FINISHED)
        return self.opened.look(finished_page_request(self.opened, limit, after), tr)

    def status(self, *, preview: int = 256, tr: ReadTransaction | None = None) -> QueueStatus:
        """Return everything that a screen shows of this queue, at one read version. Values cut to `preview`."""
        check_preview(preview)
        return self.opened.look(StatusRequest(self.id, preview), tr)

    def consumers(self, *, tr: ReadTransaction | None = None) -> Consumers:
        """Return the processes that take from this queue, as their heartbeats tell.

        A process tells of itself every 5 seconds while it takes items or holds leases, every 10 while it only waits for
        some, and for a minute longer; the first time after 2 seconds. One that is killed is live for 20 seconds more.
        Programs of older releases, and those that write an attached queue without this library, do not tell.
        """
        return self.opened.look(ConsumersRequest(self.id), tr)

    # Searching

    def find(self, item_id: str, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item of this id in whatever state. None when it is gone or never was here."""
        return self.opened.look(FindRequest(self.id, item_id), tr)

    def find_finished(self, item_id: str, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the record of a finished item: see `finished`. None when none is kept."""
        return self.opened.look(FindFinishedRequest(self.id, item_id), tr)

    def query(self, query: Query) -> Query:
        """Return a query as this queue understands it: priorities of its type. Raise what tells why it cannot."""
        return checked_query(self.opened, query)

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
        """Do one step of a search. Look at no more than `scan` items, or 1 MB, for at most `limit` that fit.

        `after` is the cursor of the step before; each item is met once. From `end`: ready items from that end, delayed
        ones from the next due, leased ones from the next to expire, dead ones from the first; with bounds in time, or
        among leased items, the oldest (`max`: the newest). Returned values are cut to `preview` bytes; `shown` is that
        of `Query.matches`.
        """
        request = search_request(self.opened, query, end=end, limit=limit, scan=scan, preview=preview, after=after)
        return self.opened.look(request, tr, background=True, shown=shown)

    # One particular item

    def remove(self, item_id: str, *, verb: str = "delete", tr: Transaction | None = None) -> Item | None:
        """Take the one item of this id, at any place. None when it is not here. `verb` counts it in the traffic.

        Conflicts with a caller that takes the same item. Together with a push in one transaction it moves an item.
        """
        request = RemoveRequest(self.id, item_id, verb, self.opened.context.clock.now_ms())
        return self._send(request, tr)

    # Operating

    def pause(self, *, reason: str, until: datetime | None = None, by: str = "", tr: Transaction | None = None) -> None:
        """Stop taking, with a reason; pushing goes on. `until` (an aware datetime) is when it resumes by itself.

        Raises `NaiveTime`, `TimePassed`, `BadText`, `NotForAttached`.
        """
        self._reconfigure(pause_request(self.opened, reason=reason, until=until, by=by), tr)

    def resume(self, *, tr: Transaction | None = None) -> None:
        """Let items be taken again; resuming what is not paused changes nothing."""
        self._reconfigure(resume_request(self.opened), tr)

    def configure(self, *, tr: Transaction | None = None, **changes: Unpack[Settings]) -> None:
        """Change settings of the queue; the rest stays. Raises `BadSetting`, `NotForAttached`.

        Items keep what was true of them: dead ones stay dead, and none leaves because it is larger than a new limit.
        """
        self._reconfigure(configure_request(self.opened, changes), tr)

    # Inside

    def _pop_one(self, end: End, wait: Wait, tr: Transaction | None) -> Item | None:
        items = self._pop(self._pops[end] if tr is None else pop_request(self.opened, 1, end, tr), wait, tr)
        return items[0] if items else None

    def _pop(self, request: PopRequest, wait: Wait, tr: Transaction | None) -> list[Item]:
        items: list[Item]
        if wait is False:
            items = self._send(request, tr)
        else:

            def take(within: float) -> list[Item]:
                return self._send(waiting(request, within), tr)

            items = wait_for(self.opened, take, list[Item](), wait, tr)
        self._consumption.took(len(items) if tr is None else 0)
        return items

    def _peek(self, end: End, tr: ReadTransaction | None) -> Item | None:
        items = self.opened.look(PeekManyRequest(self.id, 1, end), tr)
        return items[0] if items else None

    def _send(self, request: Request[A], tr: Transaction | None) -> A:
        """Have a request executed in this transaction, or in one of its own with those of concurrent callers."""
        if tr is not None:
            return self.opened.send(request, tr)
        kind = type(request)
        answer: A = self._kv.serve(self._batches.get(kind) or self.opened.batch(kind), request)
        return answer

    def _reconfigure(self, request: Request[bytes], tr: Transaction | None) -> None:
        record = self._send(request, tr)
        if tr is None:
            self.opened.settle(record)


class PriorityQueue(Queue):
    """A double-ended priority queue: the smallest priority is first, then the earliest push. Thread-safe."""

    def push(
        self,
        value: Any,
        priority: Priority,
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> Item:
        """Add an item and return it. It conflicts with no other call; run twice it adds two items.

        `value` is bytes, 0 to 90,000, or what the queue's codec encodes; `priority` is of the queue's type. With
        `delay` (seconds or a timedelta), or until `due` (an aware datetime), the item is delayed: it is not taken
        before then. An item that is due by now is ready at once. Raises `BadValue`, `ValueTooLarge`, `BadPriority`,
        `BadTime`, `NaiveTime`, `QueueClosed`, `QueueFull`, `QueueNotFound`.
        """
        if delay is not None or due is not None:
            return self.push_many([(value, priority)], delay=delay, due=due, tr=tr)[0]
        return self._send(push_request(self.opened, value, priority), tr)

    def push_many(
        self,
        items: Iterable[tuple[Any, Priority] | tuple[Any, Priority, When | None]],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> list[Item]:
        """Add at most 1,000 items and 5 MB, all or none, in this order. Return them.

        `items` are (value, priority) or (value, priority, delay or due time). `delay` or `due` hold for every item
        without a time of its own. Raises `TooLarge`, and the errors of `push`.
        """
        request = push_many_request(self.opened, items, either(delay, due))
        return self._send(request, tr) if request.values else []

    def pop_min(self, *, wait: Wait = False, tr: Transaction | None = None) -> Item | None:
        """Take the item of the smallest priority, the oldest among equals. None when nothing is ready.

        `wait=True` waits forever for one, `wait=5.0` (seconds) or a timedelta that long, through a pause too. Raises
        `QueuePaused` if it does not wait, `BadTime`, `QueueNotFound`.
        """
        return self._pop_one("min", wait, tr)

    def pop_max(self, *, wait: Wait = False, tr: Transaction | None = None) -> Item | None:
        """Take the item of the largest priority, the newest among equals. None when nothing is ready.

        `wait` is that of pop_min.
        """
        return self._pop_one("max", wait, tr)

    def pop_many(self, n: int, *, end: str = "min", wait: Wait = False, tr: Transaction | None = None) -> list[Item]:
        """Take at most `n` items (1 to 1,000, 5 MB) from one end as one. The first to leave is first.

        `end` is `min` or `max`. With `wait`, that of pop_min, it returns as soon as there is at least one. Of items
        with long logs of attempts fewer are taken at once. Raises `BadLimit`, `BadEnd`, `TooLarge` (nothing is taken),
        `QueuePaused`.
        """
        return self._pop(pop_request(self.opened, n, check_end(end), tr), wait, tr)

    def peek_min(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item that pop_min would take, changing nothing."""
        return self._peek("min", tr)

    def peek_max(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item that pop_max would take, changing nothing."""
        return self._peek("max", tr)


class FifoQueue(Queue):
    """A first-in, first-out queue. Thread-safe."""

    def enqueue(
        self,
        value: Any,
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> Item:
        """Add an item at the tail and return it. It conflicts with no other call; run twice it adds two items.

        With `delay` (seconds or a timedelta), or until `due` (an aware datetime), it is delayed: it comes to the tail
        then. Raises the errors of `PriorityQueue.push`.
        """
        return self.enqueue_many([value], delay=delay, due=due, tr=tr)[0]

    def enqueue_many(
        self,
        values: Iterable[Any],
        *,
        delay: Duration | None = None,
        due: datetime | None = None,
        tr: Transaction | None = None,
    ) -> list[Item]:
        """Add at most 1,000 items and 5 MB at the tail. All or none are added, in order; `delay` or `due` for all."""
        request = enqueue_many_request(self.opened, values, either(delay, due))
        return self._send(request, tr) if request.values else []

    def dequeue(self, *, wait: Wait = False, tr: Transaction | None = None) -> Item | None:
        """Take the item at the head; None when nothing is ready.

        `wait` and the errors are those of `PriorityQueue.pop_min`.
        """
        return self._pop_one("min", wait, tr)

    def dequeue_many(self, n: int, *, wait: Wait = False, tr: Transaction | None = None) -> list[Item]:
        """Take at most `n` items (1 to 1,000, 5 MB) from the head as one.

        `wait` and the errors are those of `PriorityQueue.pop_many`.
        """
        return self._pop(pop_request(self.opened, n, "min", tr), wait, tr)

    def peek(self, *, tr: ReadTransaction | None = None) -> Item | None:
        """Return the item at the head, changing nothing."""
        return self._peek("min", tr)


def verb_of_other_kind(queue: Any, name: str) -> Callable[..., None]:
    """Return what raises `WrongKind` for a verb that a queue does not have. Raise `AttributeError` for other names."""
    if name not in _VERBS:
        raise AttributeError(f"{type(queue).__name__!r} object has no attribute {name!r}")
    return lambda *_, **__: queue.opened.check_kind(*_VERBS[name])


#: A queue of either kind; `isinstance` tells which.
AnyQueue: TypeAlias = PriorityQueue | FifoQueue


def open_queue(context: StoreContext, config: Config) -> AnyQueue:
    """Return the queue of a config."""
    return queue_of(OpenQueue(context, config))


def queue_of(opened: OpenQueue) -> AnyQueue:
    """Return the facade of an open queue."""
    return FifoQueue(opened) if opened.config.fifo else PriorityQueue(opened)


def for_client(queue: AnyQueue, client: Client) -> AnyQueue:
    """Return a handle of a queue that counts its takes as those of a client of this process."""
    opened = copy(queue.opened)
    opened.consumption = opened.context.presence.of(queue.id, client)
    opened.taker = process_name(client.host, client.pid)
    return queue_of(opened)


def for_taker(queue: AnyQueue, name: str) -> AnyQueue:
    """Return a handle of a queue that records its pops under this name."""
    opened = copy(queue.opened)
    opened.taker = name[:MAX_WORKER]
    return queue_of(opened)
