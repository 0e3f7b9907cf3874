"""Activity of a queue: how much is pushed, taken and finished, and for how long nothing is.

Time is what was watched: a step of the clock, or a gap between two observations, counts for a minute at most, so that
neither raises an alarm by itself.
"""

from msgspec.structs import replace

from queues.health.averages import NO_TRAFFIC
from queues.health.growth import Marks
from queues.health.health import STALE, Health
from queues.health.observation import Observation

#: Seconds for which one step counts at most.
_STEP = 60.0
#: The longest usual pause between takes in seconds: where no item is held, and learned from an alarm.
LEARNED = 300.0
#: Share by which a longer pause becomes the usual one, and seconds of takes, or ten such pauses, that forget it.
_UPWARD, _FORGOTTEN = 0.5, 600.0
#: Items that came back, while none was finished, that say that consumers fail.
FAILED = 5
#: Seconds after its first take within which a consumer tells of itself, with its first heartbeat.
_TOLD = 10.0
#: Seconds for which the number of consumers is unknown after one took that does not tell of itself.
_UNKNOWN = 3600.0


def seconds_between(before: Observation, seen: Observation) -> float:
    """Return the seconds that were watched between two observations."""
    return min(max(seen.at - before.at, 0.0), _STEP)


def first_item(seen: Observation) -> float | None:
    """Return when there was an item first, as far as an observation tells."""
    return (seen.oldest or seen.at) if seen.ready else None


def watched(before: Health, seen: Observation) -> Health:
    """Return the health with its averages, marks and times brought up to an observation."""
    was, seconds = before.seen, seconds_between(before.seen, seen)
    change = seen.ready - was.ready
    by_hand = _by_hand(was, seen)
    paused = seen.paused is not None or was.paused is not None
    taken, waiting = seen.taken - was.taken, bool(was.ready and seen.ready)
    marks = Marks() if paused else before.marks
    moved, gap = by_hand, seen.at - was.at
    if gap > seconds:  # only so many seconds count: a share of what changed in the gap does, so that its rate is right
        moved += round((change - by_hand) * (1 - seconds / gap))
    marks = marks.shifted(moved)
    # A pause counts against no consumer; what was not taken before it was not taken after it either.
    worked = 0.0 if paused else seconds
    unseen = waiting and seen.signs == was.signs
    silent = before.silent + worked if unseen else 0.0
    untaken = before.untaken + worked if waiting and not taken else 0.0
    usual = before.usual
    returned, finished = seen.returned - was.returned, seen.done != was.done
    if taken:
        # A pause that ends with a job is as long as jobs take; any other may have been a failure.
        job = (was.leased and finished) or before.fruitless < _STEP
        pause = before.untaken if job else min(before.untaken, LEARNED)
        # Forgotten by time, not by takes: a worker that is started for each burst takes many times in a row.
        shorter = min(1.0, (pause + seconds) / max(_FORGOTTEN, 10 * usual))
        usual += (pause - usual) * (_UPWARD if pause > usual else shorter)
    return replace(
        before,
        seen=seen,
        averages=before.averages.after(
            seen.at - was.at,
            pushed=seen.pushed - was.pushed,
            taken=taken,
            done=seen.done - was.done,
            returned=returned,
            net=change - by_hand,
        ),
        marks=marks.after(seconds, was.ready + moved, seen.ready),
        silent=silent,
        untaken=untaken,
        usual=usual,
        fruitless=0.0 if finished else before.fruitless + worked,
        failing=0.0 if finished else _failing(before, worked),
        buried=seen.dead if finished else min(before.buried, seen.dead),
        failed=0 if finished else _failed(before.failed + returned, paused=paused),
        began=before.began if before.began is not None else first_item(seen),
        unproven=_unproven(before, seen, worked, unseen=unseen),
        rested=before.rested + (max(0.0, seen.at - was.at) if paused else 0.0) if silent else 0.0,
        **_untold(before, seen, seconds, taken),
    )


def _by_hand(was: Observation, seen: Observation) -> int:
    """Return by how many ready items people changed a queue: by no more than they acted on, the rest is traffic."""
    most = abs(seen.hands - was.hands)
    return max(-most, min(most, seen.ready - was.ready))


def _failing(before: Health, seconds: float) -> float:
    """Return for how long items come back. What came back long ago says nothing of now."""
    lately = before.failed and before.averages.returned[1] > NO_TRAFFIC
    return before.failing + seconds if lately else 0.0


def _failed(items: int, *, paused: bool) -> int:
    """Return how many items came back. After a pause it takes one more to say that consumers fail: they may be new."""
    return min(items, FAILED - 1) if paused else items


def _unproven(before: Health, seen: Observation, seconds: float, *, unseen: bool) -> float | None:
    """Return for how long items were watched without a sign of a consumer, since nothing was known of them."""
    if seen.at - before.seen.at > STALE:  # what took items meanwhile may be gone
        alive = seen.signs != before.seen.signs and seen.consumers
        return None if alive or not seen.ready or seen.paused is not None else 0.0
    return None if before.unproven is None or not unseen else before.unproven + seconds


def _untold(before: Health, seen: Observation, seconds: float, taken: int) -> dict[str, float | None]:
    """Return since when, and for how long from now, takes say that there are consumers that do not tell."""
    was, untold, unknown = before.seen, before.untold, max(0.0, before.unknown - seconds)
    if seen.consumers != 0:
        return {"untold": None, "unknown": unknown}
    told = was.consumers or (seen.ended is not None and seen.ended >= was.at - _TOLD)
    if untold is not None:
        untold += seconds
        if untold >= _TOLD:
            return {"untold": None, "unknown": _UNKNOWN}
    elif taken and not told:
        return {"untold": 0.0, "unknown": _UNKNOWN if unknown else 0.0}
    return {"untold": untold, "unknown": unknown}
