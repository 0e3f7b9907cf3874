"""The queues of a load: names in groups, kinds, priorities and values as a mid-sized shop would have them.

Everything follows from the seed. Busy queues are few and quiet ones many (Zipf's law); some are served a little too
slowly, a few not at all, so that every state of a queue can be seen.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from queues import AnyQueue, FifoQueue, Priority
from queues.admin import PriorityType

Mix = Literal["urgency", "deadline", "tier", "score", "day", "none"]
#: (kind of work, priorities, whether each region has one)
_WORK: tuple[tuple[str, Mix, bool], ...] = (
    ("orders:{region}:payments", "urgency", True),
    ("mail:outbound", "tier", False),
    ("orders:{region}:fulfilment", "deadline", True),
    ("webhooks:deliver", "none", False),
    ("images:thumbnails", "urgency", False),
    ("stock:sync", "none", False),
    ("fraud:score", "score", False),
    ("orders:{region}:refunds", "urgency", True),
    ("search:reindex", "urgency", False),
    ("sms:outbound", "tier", False),
    ("labels:print", "none", False),
    ("mail:digest", "day", False),
    ("orders:{region}:invoices", "tier", True),
    ("video:transcode", "deadline", False),
    ("reports:monthly", "day", False),
    ("billing:retry", "deadline", False),
    ("backups:verify", "day", False),
    ("recommend:refresh", "score", False),
)
#: The field of its values that a new queue shows in lists.
PREVIEW = ("customer.number",)
_REGIONS = ("eu", "us", "apac")
_TYPES: dict[Mix, PriorityType] = {"score": "float", "day": "str"}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlan:
    """One queue of a load."""

    name: str
    mix: Mix
    #: Share of all pushes, and of all takes.
    push_weight: float
    pop_weight: float
    #: Which end workers take from; a FIFO queue's is min.
    end: Literal["min", "max"]
    #: Share of the pushes that are delayed, by two minutes on average.
    delayed: float = 0.0
    #: Share of the items that their handler fails on; such items are leased, and dead after three attempts.
    failing: float = 0.0
    #: Seconds for which items are taken; None: as long as the load runs.
    served_for: float | None = None

    @property
    def max_attempts(self) -> int | None:
        """After how many failed attempts an item is dead; None: no handler fails."""
        return 3 if self.failing else None

    @property
    def kind(self) -> Literal["priority", "fifo"]:
        """Whether the queue orders by priority."""
        return "fifo" if self.mix == "none" else "priority"

    @property
    def priority_type(self) -> PriorityType:
        """The type of its priorities."""
        return _TYPES.get(self.mix, "int")

    @property
    def bands(self) -> tuple[Priority, ...] | None:
        """The edges of its priority bands, where the default ones would show one bar: a new queue's only."""
        if self.mix == "deadline":
            now = int(time.time() * 1000)
            return tuple(now + quarters * 900_000 for quarters in range(15))
        if self.mix == "day":
            return tuple(f"2026-{month:02}" for month in range(2, 13))
        return (2, 5, 10, 50, 100) if self.mix == "tier" else None


def plans(count: int, *, prefix: str, seed: int) -> list[QueuePlan]:
    """Return the plans of `count` queues with names that begin with `prefix`."""
    random = Random(seed)  # noqa: S311 - traffic, no secrets
    made = []
    for rank, (name, mix) in enumerate(_names(count), start=1):
        weight = 1 / rank
        # Of ten queues one is never served, two too slowly, the rest a little faster than they fill.
        served = random.choices((0.0, 0.8, 1.15), (1, 2, 7))[0] if rank > 1 else 1.0
        end: Literal["min", "max"] = "max" if mix in ("score", "tier") else "min"
        made.append(QueuePlan(name=prefix + name, mix=mix, push_weight=weight, pop_weight=weight * served, end=end))
    return made


def with_trouble(planned: Sequence[QueuePlan]) -> Sequence[QueuePlan]:
    """Return plans with one that loses its consumer, one that is failed on and one with delayed items.

    Of fewer than nine queues all stay as they are.
    """
    if len(planned) < 9:
        return planned
    made = list(planned)
    made[2] = replace(made[2], served_for=30.0)
    made[3] = replace(made[3], failing=0.4, pop_weight=2 * made[3].push_weight)  # what fails is taken again
    made[8] = replace(made[8], delayed=0.4)
    return made


def _names(count: int) -> list[tuple[str, Mix]]:
    base = [
        (work.format(region=region), mix)
        for work, mix, everywhere in _WORK
        for region in (_REGIONS if everywhere else ("",))
    ]
    rounds = -(-count // len(base))
    names = [
        (name if number == 1 else f"{name}:{number:03}", mix) for number in range(1, rounds + 1) for name, mix in base
    ]
    return names[:count]


def priority(mix: Mix, random: Random) -> Priority | None:
    """Draw a priority of this mix; None for a FIFO queue."""
    draw = _PRIORITIES[mix]
    return draw(random)


_PRIORITIES: dict[Mix, Callable[[Random], Priority | None]] = {
    "urgency": lambda random: random.choices(range(10), (1, 2, 4, 8, 16, 30, 16, 8, 4, 2))[0],
    "deadline": lambda random: int(time.time() * 1000 + random.expovariate(1 / 3_600_000)),
    "tier": lambda random: random.choices((1, 5, 10, 100), (60, 25, 12, 3))[0],
    "score": lambda random: round(random.betavariate(2, 5), 4),
    "day": lambda random: f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02}",
    "none": lambda random: None,
}

_PLACES = ("Kraków", "Aarhus", "Reykjavík", "São Paulo", "東京", "Brno", "Lyon", "Cork", "Turku", "Graz")
_WORDS = ("blue", "oak", "mug", "lamp", "linen", "desk", "tin", "wool", "small", "chair", "glass", "north")


def value(plan: QueuePlan, random: Random) -> bytes:
    """Draw a value: a JSON document of some 100 to 400 bytes, now and then of some kilobytes."""
    document: dict[str, object] = {
        "id": random.getrandbits(63),
        "task": plan.name.rsplit(":", 1)[-1],
        "attempt": random.choices((1, 2, 3), (90, 8, 2))[0],
        "customer": {"number": f"C{random.randrange(10**6):06}", "city": random.choice(_PLACES)},
        "lines": [
            {"sku": f"{random.choice(_WORDS)}-{random.randrange(1000)}", "qty": random.randint(1, 4)}
            for _ in range(random.randint(1, 4))
        ],
    }
    if random.random() < 0.02:
        document["note"] = " ".join(random.choices(_WORDS, k=random.randint(100, 800)))
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def push(queue: AnyQueue, plan: QueuePlan, random: Random, count: int) -> None:
    """Push so many items as the plan draws them, in one transaction."""
    values = [value(plan, random) for _ in range(count)]
    delay = random.expovariate(1 / 120) if random.random() < plan.delayed else None
    if isinstance(queue, FifoQueue):
        queue.enqueue_many(values, delay=delay)
        return
    drawn = [priority(plan.mix, random) for _ in values]
    queue.push_many([(each, of) for each, of in zip(values, drawn, strict=True) if of is not None], delay=delay)


#: What a failing handler says.
_ERRORS = (
    "ConnectionError: api.example.com:443 closed the connection",
    "TimeoutError: no answer within 30 s",
    "KeyError: 'customer'",
)


def take(queue: AnyQueue, plan: QueuePlan, random: Random, count: int) -> int:
    """Take at most so many items as the plan says, in one transaction or more, and return how many."""
    if plan.failing:
        leases = queue.lease_many(count, end=plan.end, seconds=30.0, worker="sample")
        for lease in leases:
            if random.random() < plan.failing:
                queue.release(lease, reason=random.choice(_ERRORS))
            else:
                queue.ack(lease)
        return len(leases)
    return len(queue.dequeue_many(count) if isinstance(queue, FifoQueue) else queue.pop_many(count, end=plan.end))
