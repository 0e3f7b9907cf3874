"""The store that the pictures show: an hour in the life of a shop's queues, the same each time, ending now.

The hour is written with a clock of its own, so that ages, histories and the audit are as if it had passed; what flows
while pictures are taken flows at a set pace, so that rates are those that are written here.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from random import Random

from pqadmin.load import plan as planning
from pqadmin.load.plan import Mix, QueuePlan
from pqadmin.load.run import create_queues
from queues import Store, open_store
from queues.errors import QueuePaused
from tests.others import PREFIX, Others
from tests.waiting import begin

#: The minutes that are written, as so many minutes ago: of the queue with a history six hours, of the rest one.
_BEFORE, _HOUR = range(372, 62, -6), range(62, -1, -2)
#: Seconds between two steps of what flows.
_STEP = 0.5
#: (minutes ago, share of the depth now): how a queue got there. Most were empty a while ago: nothing in them is old.
_COURSES: dict[str, tuple[tuple[int, float], ...]] = {
    "wave": ((62, 0.4), (52, 0.95), (41, 0.25), (30, 0.8), (14, 0.0), (6, 0.55), (0, 1.0)),
    "calm": ((62, 0.7), (50, 1.0), (44, 0.55), (28, 0.9), (14, 0.0), (11, 0.8), (5, 1.05), (0, 1.0)),
    "peak": ((62, 0.1), (34, 0.2), (14, 0.0), (11, 0.9), (6, 1.3), (0, 1.0)),
    "climb": ((62, 0.04), (40, 0.12), (14, 0.0), (10, 0.12), (5, 0.45), (0, 1.0)),
    "stuck": ((62, 0.12), (50, 0.2), (42, 0.0), (41, 0.04), (20, 0.52), (0, 1.0)),
    "still": ((62, 0.0), (61, 1.0), (0, 1.0)),
    "day": (
        *((372, 0.3), (330, 0.9), (296, 0.35), (250, 1.7), (205, 0.5), (160, 1.15), (118, 0.2), (84, 1.3), (60, 0.6)),
        *((40, 0.9), (26, 0.2), (21, 1.5), (14, 0.0), (9, 0.9), (5, 1.15), (0, 1.0)),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One queue: how many items it ends with, by which course, and what flows meanwhile, in items a second."""

    name: str
    mix: Mix
    depth: int
    course: str
    rate_in: float = 0.0
    rate_out: float = 0.0

    @property
    def plan(self) -> QueuePlan:
        """What the load knows of such a queue."""
        end = "max" if self.mix in ("score", "tier") else "min"
        return QueuePlan(name=self.name, mix=self.mix, push_weight=self.rate_in, pop_weight=self.rate_out, end=end)

    def depth_at(self, ago: float) -> int:
        """Return the depth so many minutes before the end."""
        course = _COURSES[self.course]
        for (earlier, before), (later, after) in pairwise(course):
            if earlier >= ago >= later:
                return round(self.depth * (before + (after - before) * (earlier - ago) / (earlier - later)))
        return 0


SCENES: Sequence[Scene] = (
    Scene(name="orders:eu:refunds", mix="urgency", depth=1_677, course="stuck", rate_in=5),
    Scene(name="mail:digest", mix="day", depth=3_140, course="climb", rate_in=12, rate_out=4),
    Scene(name="reports:monthly", mix="day", depth=77, course="still"),
    Scene(name="orders:eu:payments", mix="urgency", depth=4_120, course="wave", rate_in=14, rate_out=18),
    Scene(name="orders:us:payments", mix="urgency", depth=2_685, course="calm", rate_in=12, rate_out=12),
    Scene(name="orders:apac:payments", mix="urgency", depth=961, course="calm", rate_in=4, rate_out=5),
    Scene(name="orders:eu:invoices", mix="tier", depth=1_240, course="peak", rate_in=2, rate_out=4),
    Scene(name="mail:outbound", mix="tier", depth=2_204, course="day", rate_in=8, rate_out=12),
    Scene(name="webhooks:deliver", mix="none", depth=358, course="wave", rate_in=10, rate_out=10),
    Scene(name="fraud:score", mix="score", depth=531, course="calm", rate_in=6, rate_out=6),
    Scene(name="images:thumbnails", mix="urgency", depth=905, course="peak", rate_in=2, rate_out=6),
    Scene(name="search:reindex", mix="urgency", depth=1_466, course="wave", rate_in=1, rate_out=3),
    Scene(name="sms:outbound", mix="tier", depth=0, course="wave"),
)
#: What the server finds wrong, the worst first, and items a second of all pushes, a little less than all of them.
PROBLEMS = (("orders:eu:refunds", "critical"), ("mail:digest", "warning"))
RATE_IN = 0.9 * sum(scene.rate_in for scene in SCENES)
#: The queue of the pictures that show one.
SHOWN = "mail:outbound"
_SHOWN = next(scene for scene in SCENES if scene.name == SHOWN)


def make(store_url: str) -> None:
    """Write the hour into an empty store."""
    now, ago = time.time(), float(_BEFORE[0])
    with open_store(store_url, clock=lambda: now - ago * 60) as store:
        create_queues(store, [scene.plan for scene in SCENES])
        random, recorder = Random(7), store.recorder()
        for ago in (*_BEFORE, *_HOUR):
            for scene in SCENES:
                if scene.name == SHOWN or ago in _HOUR:
                    _move(store, scene, scene.depth_at(ago), random)
            _happen(store, ago, random)
            recorder.look()
        recorder.flush()
        Others(store).push(*((n % 7, f'{{"parcel": "PX-{4400 + n}"}}'.encode()) for n in range(23)))
        store.attach("legacy:dispatch", prefix=PREFIX)


def _move(store: Store, scene: Scene, wanted: int, random: Random) -> None:
    """Push and take until a queue holds so many; a little flows through those that are served, too."""
    queue = store.queue(scene.name)
    through = min(wanted, 10) if scene.rate_out else 0
    depth = queue.depth()
    _push(store, scene, max(0, wanted - depth) + through, random)
    _take(store, scene, queue.depth() - wanted)


def _push(store: Store, scene: Scene, count: int, random: Random) -> None:
    plan, queue = scene.plan, store.queue(scene.name)
    values = [planning.value(plan, random) for _ in range(count)]
    for start in range(0, count, 1_000):
        some = values[start : start + 1_000]
        if plan.kind == "fifo":
            queue.enqueue_many(some)
        else:
            drawn = [planning.priority(plan.mix, random) for _ in some]
            queue.push_many([(value, of) for value, of in zip(some, drawn, strict=True) if of is not None])


def _take(store: Store, scene: Scene, count: int) -> None:
    queue = store.queue(scene.name)
    for start in range(0, count, 1_000):
        some = min(1_000, count - start)
        with suppress(QueuePaused):  # nothing is taken then
            _ = queue.dequeue_many(some) if scene.plan.kind == "fifo" else queue.pop_many(some, end=scene.plan.end)


def _happen(store: Store, ago: int, random: Random) -> None:
    """Let people and workers do what they did so many minutes before the end."""
    shown = store.queue(SHOWN)
    ada, grace = store.actions("ada"), store.actions("grace")
    if ago == 56:
        ada.purge("sms:outbound", confirm="sms:outbound", reason="test messages of the new gateway")
    elif ago == 48:
        grace.pause("reports:monthly", reason="ledger is closing")
    elif ago == 38:
        job = ada.begin_bulk("move", "orders:eu:refunds", to="orders:eu:payments", reason="pushed to the wrong queue")
        ada.run_bulk(job.id)
    elif ago == 26:
        ada.pause(SHOWN, reason="provider throttles us")
    elif ago == 20:
        ada.resume(SHOWN, reason="provider answers again")
    elif ago == 10:
        shown.configure(max_attempts=1)
        for held in shown.lease_many(3, seconds=60, worker="mailer-2"):
            shown.release(held, reason="550 mailbox unavailable")
        shown.configure(max_attempts=10)
    elif ago == 0:
        values = [planning.value(_SHOWN.plan, random) for _ in range(14)]
        shown.push_many([(value, 10, timedelta(minutes=3 + n)) for n, value in enumerate(values)])
        store.queue("orders:eu:payments").lease_many(6, seconds=900, worker="payments-1")


@contextmanager
def flowing(store_url: str) -> Iterator[None]:
    """Let items flow through the queues while pictures are taken."""
    ended = threading.Event()

    def flow(store: Store) -> None:
        random, begun, steps = Random(11), time.monotonic(), 0
        while not ended.wait(max(0.0, begun + steps * _STEP - time.monotonic())):
            steps += 1
            for scene in SCENES:
                _push(store, scene, _due(scene.rate_in, steps), random)
                _take(store, scene, _due(scene.rate_out, steps))

    with open_store(store_url) as store:
        flow_of_items = begin(flow, store)
        try:
            yield
        finally:
            ended.set()
            flow_of_items.result()


def _due(rate: float, step: int) -> int:
    return int(rate * step * _STEP) - int(rate * (step - 1) * _STEP)
