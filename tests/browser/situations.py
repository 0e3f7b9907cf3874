"""Six situations of a shop's queues in one store: half an hour that leads to them, and how they go on.

The half hour is written with a clock of its own. Then the clock is the real one, and a thread goes on with what flows.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

from queues import Lease, Store, open_store
from queues.serving.background import BackgroundThreads
from tests.waiting import begin

#: Minutes that are written, and seconds between two moments of them, and of what goes on.
_MINUTES, _TICK, _LIVE = 30, 15, 0.5
_VALUE = b'{"customer":{"id":4711,"city":"Lyon"},"total":"19.90"}'
#: Queues in which all is well.
CALM = ("mail:digest", "orders:us:payments", "search:reindex", "sms:outbound", "stock:sync", "webhooks:deliver")


class Situation(NamedTuple):
    """One queue in trouble, and what a person is to answer: patterns of texts on its page."""

    queue: str
    level: str
    #: Why, what takes from it, and what to do next.
    why: str
    who: str
    next: str
    #: Since when.
    since: str = r"since .*\d\d:\d\d:\d\d"


SITUATIONS: Sequence[Situation] = (
    Situation("orders:eu:refunds", "critical", r"no consumer for 1\d min", "refunds-1", "work orders:eu:refunds"),
    Situation("billing:retry", "critical", "nothing finished for", "billing-1", "Open items that came back"),
    Situation("images:thumbnails", "warning", "2 consumers hold 2 items", "resize-2", "read their logs"),
    Situation("fraud:score", "warning", "grows .*/s", "score-1", "add workers"),
    Situation("mail:outbound", "warning", r"\d+ dead", "mailer-1", "read their errors", r"seen first at [\d -]*\d\d:"),
    Situation("reports:monthly", "warning", "paused by grace.*the ledger is closing", "reports-1", "Resume it"),
)


class _Still(BackgroundThreads):
    """No threads: the shop sends the heartbeats itself."""

    def start(self, work: Callable[[], None], name: str) -> None:
        """Do nothing."""


class _Worker:
    """One process that takes from one queue."""

    def __init__(self, store: Store, clock: Callable[[], float], queue: str, name: str) -> None:
        context = store.context
        self.store = Store(
            context.kv, url=store.url, keyspace=context.keyspace, clock=clock, background_threads=_Still()
        )
        self.queue, self.name = self.store.queue(queue), name
        self.held: list[Lease] = []
        self._owed = 0.0

    def take(self, rate: float, *, seconds: float = 60.0) -> Sequence[Lease]:
        """Lease as many items as belong to a moment, and tell of itself."""
        self._owed += rate
        n, self._owed = int(self._owed), self._owed % 1
        return self.queue.lease_many(n, seconds=seconds, worker=self.name) if n else []

    def serve(self, rate: float) -> None:
        """Handle so many items."""
        done = self.take(rate)
        if done:
            self.queue.ack_many(done)


class Shop:
    """The store of the six situations. In a `with` statement it goes on as it went."""

    def __init__(self, url: str) -> None:
        #: The time while the half hour is written; then None.
        self._now: float | None = time.time() - _MINUTES * 60
        self._began = self._now
        self.store = open_store(url, clock=self._clock)
        for name in (*CALM, *(situation.queue for situation in SITUATIONS)):
            self.store.create_queue(name).configure(max_attempts=3 if name == "mail:outbound" else 50)
        self._workers = {
            name: _Worker(self.store, self._clock, queue, name)
            for queue, name in (
                *((queue, f"{queue.rpartition(':')[2]}-1") for queue in CALM),
                ("orders:eu:refunds", "refunds-1"),
                ("billing:retry", "billing-1"),
                ("images:thumbnails", "resize-1"),
                ("images:thumbnails", "resize-2"),
                ("fraud:score", "score-1"),
                ("mail:outbound", "mailer-1"),
                ("reports:monthly", "reports-1"),
            )
        }
        self._owed: dict[str, float] = {}
        self._mails = 0
        self._ended = threading.Event()
        self._write()

    def _clock(self) -> float:
        return time.time() if self._now is None else self._now

    def _write(self) -> None:
        """Let the half hour pass, watched by a recorder."""
        recorder = self.store.recorder(count=self._clock)
        while self._now is not None:
            self._pass(_TICK)
            self._beat()
            self.store.sweep()
            recorder.look()
            self._now = self._now + _TICK if self._now + _TICK < time.time() else None
        recorder.flush()

    @property
    def _minute(self) -> float:
        return (self._clock() - self._began) / 60

    def _beat(self) -> None:
        """Let every process that is alive tell of itself."""
        for worker in self._workers.values():
            if worker.name != "refunds-1" or self._minute < 18:
                worker.store.context.presence.beat()

    def _pass(self, seconds: float) -> None:
        """Let some seconds pass: what is pushed, and what each worker does."""
        minute, workers = self._minute, self._workers
        for queue in CALM:
            self._push(queue, 0.6 * seconds)
            workers[f"{queue.rpartition(':')[2]}-1"].serve(0.9 * seconds)
        # Its worker is killed.
        self._push("orders:eu:refunds", 0.5 * seconds)
        if minute < 18:
            workers["refunds-1"].serve(0.8 * seconds)
        # From a minute on each handler fails.
        self._push("billing:retry", 0.2 * seconds)
        billing = workers["billing-1"]
        for lease in billing.take(0.4 * seconds):
            if minute < 22:
                billing.queue.ack(lease)
            else:
                billing.queue.release(lease, reason="PaymentError: 503 of the bank", delay=5)
        # Two workers hang, and extend their leases.
        self._push("images:thumbnails", 0.1 * seconds)
        for name in ("resize-1", "resize-2"):
            resize = workers[name]
            if minute < 17:
                resize.serve(0.1 * seconds)
            elif resize.held:
                resize.held = [resize.queue.extend(each, seconds=300) for each in resize.held]
            else:
                resize.held = list(resize.queue.lease_many(1, seconds=300, worker=name))
        # More comes than its one worker handles.
        self._push("fraud:score", (0.5 if minute < 12 else 1.4) * seconds)
        workers["score-1"].serve(0.8 * seconds)
        # Some mails cannot be sent.
        self._push("mail:outbound", 0.6 * seconds)
        mailer = workers["mailer-1"]
        for lease in mailer.take(1.2 * seconds):
            self._mails += 1
            if minute > 20 and (lease.item.attempts > 1 or self._mails % 12 == 0):
                mailer.queue.release(lease, reason="SMTPError: 550 mailbox unavailable")
            else:
                mailer.queue.ack(lease)
        # A person pauses it.
        self._push("reports:monthly", 0.02 * seconds)
        reports = workers["reports-1"]
        if minute < 8:
            reports.serve(0.1 * seconds)
        elif reports.queue.status().pause is None:
            self.store.actions("grace").pause("reports:monthly", reason="the ledger is closing")
            reports.store.context.presence.of(reports.queue.id).attend(self, lambda: 1, reports.name)

    def _push(self, name: str, rate: float) -> None:
        owed = self._owed.get(name, 0.0) + rate
        if owed >= 1:
            self.store.queue(name).push_many(
                [(b'{"customer":{"id":4711,"city":"Lyon"},"total":"19.90"}', 5)] * int(owed)
            )
        self._owed[name] = owed % 1

    def __enter__(self) -> Self:
        self._going = begin(self._go_on)
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        try:
            self._going.result()
        finally:
            self.store.close()

    def _go_on(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(_LIVE):
            now = time.monotonic()
            self._pass(now - began)
            began = now
            self._beat()
