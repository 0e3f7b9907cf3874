"""Observation of a queue's health, made from its status."""

from datetime import datetime

from queues.health import Health, Observation, Targets, advance
from queues.items.counters import BY_HAND, OF_PEOPLE
from queues.status.status import QueueStatus


def observation_of(status: QueueStatus, at: float, *, wait: float | None = None) -> Observation:
    """Return what a status says of a queue's health at a time, in seconds since the epoch."""
    totals, traffic = status.totals, status.totals.traffic
    pause, consumers = status.pause, status.consumers
    ended = consumers.ended

    def programs(*verbs: str) -> int:
        return sum(traffic.get(verb, 0) - traffic.get(BY_HAND + verb, 0) for verb in verbs)

    return Observation(
        at=at,
        ready=totals.ready,
        leased=totals.leased,
        delayed=totals.delayed,
        dead=totals.dead,
        pushed=programs("push"),
        taken=programs("pop", "lease"),
        done=programs("pop", "ack"),
        released=programs("release"),
        extended=programs("extend"),
        expired=programs("expire"),
        hands=sum(traffic.get(verb, 0) for verb in OF_PEOPLE),
        oldest=None if status.oldest is None else status.oldest.timestamp(),
        wait=wait,
        consumers=len(consumers.live) if consumers.known else None,
        ended=None if ended is None else ended.over_ms / 1000,
        lost=ended is not None and ended.end == "lost",
        paused=None
        if pause is None or (pause.until is not None and pause.until.timestamp() <= at)
        else pause.since.timestamp(),
        drift=status.drift,
        attached=status.attached,
        unreadable=bool(status.unreadable),
        most=status.max_depth,
    )


def health_at(status: QueueStatus, targets: Targets, now: datetime) -> Health | None:
    """Return the recorded health of a queue, judged now by these targets. None where nothing was recorded."""
    health = status.health
    if health is None or status.unreadable or status.attached:
        return None
    at = max(now.timestamp(), health.seen.at)
    return advance(health, observation_of(status, at, wait=health.seen.wait), targets)


def average_rates(status: QueueStatus, targets: Targets, now: datetime) -> tuple[list[float], list[float]] | None:
    """Return what programs push and take a second, over 1, 5 and 15 minutes; None where nothing was recorded."""
    health = health_at(status, targets, now)
    if health is None:
        return None
    averages = health.averages
    pushed, taken = averages.told(averages.pushed), averages.told(averages.taken)
    return [round(rate, 3) for rate in pushed], [round(rate, 3) for rate in taken]
