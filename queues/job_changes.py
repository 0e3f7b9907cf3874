"""What a chunk of a job does to the items that it found, inside its transaction."""

from __future__ import annotations

from collections.abc import Sequence

from queues import moving, standing, transitions
from queues.changes import Change
from queues.config import Config
from queues.errors import QueueNotFound, WrongKind
from queues.jobs import Job
from queues.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Transaction
from queues.moving import Place
from queues.priority import Priority
from queues.ready import Heads
from queues.standing import Standing
from queues.suffixes import ready_elements, ready_suffix
from queues.tally import Tally
from queues.wording import STATE_WORDS

#: Acts by the states whose items they are for.
ACTS = {
    "ready": ("move", "reprioritise", "delete"),
    "delayed": ("promote", "move", "reprioritise", "delete"),
    "leased": ("release", "delete"),
    "dead": ("retry", "move", "reprioritise", "delete"),
}


def config_of(tr: ReadTransaction, keyspace: Keyspace, queue_id: int, name: str) -> Config:
    """Return the config of a job's queue; raise `QueueNotFound` when that is gone."""
    record = tr.get(keyspace.config(queue_id)).wait()
    if record is None:
        raise QueueNotFound(name)
    return Config.of(name, record)


def change(
    tr: Transaction,
    keyspace: Keyspace,
    job: Job,
    config: Config,
    some: Sequence[Standing],
    *,
    rands: Sequence[bytes],
    now_ms: int,
) -> list[Change]:
    """Do to these items what the job says, and return what changed; what is as asked already is left out."""
    if job.act == "delete":
        return moving.delete(tr, keyspace, config, some)
    if job.act == "promote":
        return transitions.promote(tr, keyspace, config, some)
    if job.act == "retry":
        return transitions.retry(tr, keyspace, config, some)
    if job.act == "release":
        return transitions.release(tr, keyspace, config, some, now_ms=now_ms, reason=job.reason)
    if job.act == "reprioritise":
        if job.ahead is not None:
            return _bring(tr, keyspace, job, config, some)
        return moving.reprioritise(tr, keyspace, config, some, priority=job.priority, shift=job.shift)
    assert job.to_id is not None
    target = config_of(tr, keyspace, job.to_id, job.to or "")
    return moving.move(tr, keyspace, config, target, some, priority=job.priority, rands=rands[: len(some)])


def ahead_of(
    tr: Transaction, keyspace: Keyspace, config: Config, state: str, place: Place, total: int
) -> tuple[Priority | None, int]:
    """Return priority and count of the first of so many items that are brought to the front or the back.

    They are settled when a job begins: what it brings stands beyond all that it will meet, whoever pops meanwhile.
    """
    if state != "ready":
        raise WrongKind("Only ready items can be brought to the front or the back: promote or retry the others first.")
    keys = keyspace.queue(config.id)
    end = Heads(tr.snapshot, keys, config.generations, end="min" if place == "front" else "max", limit=1).wait()
    if not end:
        return None, 0
    priority, count, _ = ready_elements(end[0].suffix, fifo=config.fifo)
    return priority, count - total if place == "front" else max(count + 1, config.base + tr.stamp())


def _bring(tr: Transaction, keyspace: Keyspace, job: Job, config: Config, some: Sequence[Standing]) -> list[Change]:
    assert job.ahead is not None
    priority, first = job.ahead
    keys = keyspace.queue(config.id)
    tally = Tally(keys, wake=True)
    tally.traffic("reprioritise", len(some))
    afters = [
        standing.at_suffix(there, ready_suffix(priority, n, there.rand))
        for n, there in enumerate(some, start=first + job.done)
    ]
    standing.refuse_taken(tr, keys, config, list(zip(some, afters, strict=True)))
    for there, after in zip(some, afters, strict=True):
        standing.change(tr, keys, config, there, after, tally)
    tally.apply(tr)
    return [Change(before=there, after=after) for there, after in zip(some, afters, strict=True)]


def refuse_state(act: str, state: str) -> None:
    """Raise `WrongKind` when an act is not for items of this state."""
    if act not in ACTS[state]:
        names = ", ".join(ACTS[state])
        raise WrongKind("What can be done with all {state} items: {names}.", state=STATE_WORDS[state], names=names)
