"""What may be begun as a job: which act on items of which state, with what."""

from __future__ import annotations

from dataclasses import replace

from queues.errors import BadPriority, BadQueueKind, BadSetting, ItemLeased, WrongKind
from queues.job_changes import ACTS, refuse_state
from queues.moving import Place
from queues.names import display_name
from queues.priority import Priority, normalise
from queues.queue import Queue
from queues.queue_keys import STATES
from queues.search import Query
from queues.walking import Order

#: Items a second; slower than that nobody waits for.
SLOWEST, FASTEST = 1.0, 1_000_000.0


def check(
    act: str,
    query: Query,
    priority: Priority | None,
    shift: Priority | None,
    place: Place | None,
    rate: float | None,
) -> None:
    """Raise what tells why an act on all can not be begun so."""
    query.check()
    if not any(act in acts for acts in ACTS.values()) or query.state not in STATES:
        known = sorted({act for acts in ACTS.values() for act in acts})
        raise BadQueueKind(
            "Acts on all are {acts}, of {states} items.", acts=", ".join(known), states=", ".join(STATES)
        )
    if act == "reprioritise" and sum(given is not None for given in (priority, shift, place)) != 1:
        raise BadPriority("Say one of: the priority, by how much to shift it, or front or back.")
    if query.state == "leased" and act not in ACTS["leased"]:
        raise ItemLeased("These items are in workers' hands: they can be taken back or deleted, and nothing else.")
    refuse_state(act, query.state)
    if query.state != "ready" and (query.low is not None or query.high is not None):
        raise WrongKind("Only ready items stand in the order of their priorities.")
    if rate is not None and not SLOWEST <= rate <= FASTEST:
        raise BadSetting(
            "A job changes {least:,.0f} to {most:,.0f} items a second.", "rate", least=SLOWEST, most=FASTEST
        )


def fitting(queue: Queue, query: Query, act: str, place: Place | None) -> Query:
    """Return the query in the queue's own priorities; raise `WrongKind` for what a FIFO queue has none for."""
    config = queue.config
    if config.fifo and (query.low is not None or query.high is not None or (act == "reprioritise" and place is None)):
        raise WrongKind("{queue} is a fifo queue: its items have no priority.", queue=display_name(queue.name))
    low, high = (None if edge is None else normalise(edge, config.priority_type) for edge in (query.low, query.high))
    return replace(query, low=low, high=high)


def bounded(query: Query, order: Order) -> bool:
    """Say whether a walk leaves out items of the state, so that its depth does not tell how many it meets."""
    edges = (query.since, query.until) if order == "age" else (query.low, query.high)
    return any(edge is not None for edge in edges)
