"""The checks before a bulk job begins: which actions are for which items, and where it begins."""

from typing import NamedTuple

from queues.bulk.bulk_job import Job
from queues.errors import (
    STATE_WORDS,
    BadPriority,
    BadSetting,
    BadState,
    ItemLeased,
    WrongKind,
    display_name,
)
from queues.items import scan
from queues.items.item_changes import Place, beyond
from queues.items.scan import Lane, Order, Query
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import STATES
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config, decode
from queues.model.priority import Priority, check_finite
from queues.operations.search import checked_query
from queues.queue import Queue

#: Items a second, at least and at most.
SLOWEST, FASTEST = 1.0, 1_000_000.0


def check(
    act: str,
    query: Query,
    priority: Priority | None,
    shift: Priority | None,
    place: Place | None,
    rate: float | None,
) -> None:
    """Raise what tells why an act on all cannot be begun so."""
    query.check()
    for given in (priority, shift):
        check_finite(given)
    if not any(act in acts for acts in ACTS.values()) or query.state not in STATES:
        known = sorted({act for acts in ACTS.values() for act in acts})
        raise BadState("Acts on all are {acts}, of {states} items.", acts=", ".join(known), states=", ".join(STATES))
    if act == "reprioritize" and sum(given is not None for given in (priority, shift, place)) != 1:
        raise BadPriority("Say one of: the priority, by how much to shift it, or front or back.")
    if query.state == "leased" and act not in ACTS["leased"]:
        raise ItemLeased("These items are in workers' hands: they can be taken back or deleted, and nothing else.")
    if act not in ACTS[query.state]:
        names = ", ".join(ACTS[query.state])
        raise WrongKind(
            "What can be done with all {state} items: {names}.", state=STATE_WORDS[query.state], names=names
        )
    if query.state != "ready" and (query.low is not None or query.high is not None):
        raise WrongKind("Only ready items are in the order of their priorities.")
    if rate is not None and not SLOWEST <= rate <= FASTEST:
        raise BadSetting(
            "A job changes {least:,.0f} to {most:,.0f} items a second.", "rate", least=SLOWEST, most=FASTEST
        )


def fitting(queue: Queue, query: Query, act: str, place: Place | None) -> Query:
    """Return the query in the queue's own priorities. Raise `WrongKind` for what a FIFO queue has none for."""
    if queue.config.fifo and act == "reprioritize" and place is None:
        raise WrongKind("{queue} is a fifo queue: its items have no priority.", queue=display_name(queue.name))
    return checked_query(queue.opened, query)


def bounded(query: Query, order: Order) -> bool:
    """Say whether a walk leaves out items of the state: its depth is not their number then."""
    edges = (query.since, query.until) if order == "age" else (query.low, query.high)
    return any(edge is not None for edge in edges)


#: Acts by the states of the items that they are for.
ACTS = {
    "ready": ("move", "reprioritize", "delete"),
    "delayed": ("promote", "move", "reprioritize", "delete"),
    "leased": ("release", "delete"),
    "dead": ("retry", "move", "reprioritize", "delete"),
}


class QueueOf(NamedTuple):
    """The queue of a job, which may be gone."""

    id: int
    name: str


def queue_of(tr: ReadTransaction, keyspace: Keyspace, job: Job) -> QueueOf:
    """Return a job's queue by its present name, or by the one it had if it is gone or cannot be read."""
    config = decode(tr.get(keyspace.configs.key(job.queue_id)).wait())
    return QueueOf(job.queue_id, job.queue if config is None else config.name)


def ahead_of(
    tr: Transaction, keyspace: Keyspace, config: Config, state: str, place: Place, total: int
) -> tuple[Priority | None, int]:
    """Return priority and count of the first of so many items that are brought to the front or the back.

    They are chosen when a job begins, beyond all items that it will meet.
    """
    if state != "ready":
        raise WrongKind("Only ready items can be brought to the front or the back: promote or retry the rest first.")
    newest = config.base + tr.stamp() if place == "back" else 0
    return beyond(tr.snapshot, keyspace.queue(config.id), config, place, total, newest)


def order_of(act: str, query: Query, *, to: Priority | None, shifts: bool, ordered: bool) -> Order:
    """Return along what an act walks: its items' places where their order counts, else their ids if that is less.

    `to` is the priority that all items get.
    """
    # Leases that are extended change their places. Items that workers fail at come back, delayed or dead, to a place
    # that the walk may still have before it.
    if query.state == "leased" or act in ("promote", "retry"):
        return "age"
    # Along places, an item that the act puts behind the mark is met again. Within bounds that is cheaper than by age.
    anywhere = query.low is None and query.high is None
    if shifts or (act == "reprioritize" and (query.state != "ready" or (to is not None and anywhere))):
        return "age"
    return "age" if query.timed and not ordered and act != "move" else "place"


def bounds(tr: ReadTransaction, lanes: list[Lane]) -> tuple[bytes, bytes] | None:
    """Return the mark before the first place and the last place now. None when there is none."""
    first, _ = scan.along(tr, lanes, after=None, end="min", limit=1)
    last, _ = scan.along(tr, lanes, after=None, end="max", limit=1)
    # No place or id lies between a place and itself without its last byte.
    return (first[0][0][:-1], last[0][0]) if first and last else None
