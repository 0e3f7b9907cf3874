"""Groups of queues, by the beginnings of their names: which of them are changed at once, and the change."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.live.board.sums import label_of
from pqadmin.pages.queue_context import paused
from pqadmin.store import get_store
from queues import Actions, QueueStatus, Transaction

#: Queues of one action: all of them are one transaction.
MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The queues of a group that a person may act on."""

    #: How many there are, those that stay as they are included.
    members: int
    #: Those to pause, or to resume, by name.
    queues: Sequence[QueueStatus]


def read(
    may: Scope, label: str, directory: Mapping[str, int], *, of_paused: bool, asked: Collection[int] | None = None
) -> Group:
    """Return the group of a label, and of its queues those that are paused or not; `asked` leaves only these ids."""
    members = [
        queue_id
        for name, queue_id in directory.items()
        if label_of(name) == label and may.can(Right.ACT, name) and (asked is None or queue_id in asked)
    ]
    snapshot = get_store().snapshot(members[:MOST], preview=0, tolerant=True)
    queues = [
        status
        for status in sorted(snapshot.queues.values(), key=lambda status: status.name)
        if not status.attached and not status.unreadable and paused(status, snapshot.at) is of_paused
    ]
    return Group(members=len(members), queues=queues)


def change(
    queues: Sequence[QueueStatus],
    actions_in: Callable[[Transaction], Actions],
    each: Callable[[Actions, QueueStatus], object],
) -> None:
    """Change all queues in one transaction, with an audit record of each; `actions_in` returns the person's actions."""

    def act(tr: Transaction) -> None:
        actions = actions_in(tr)
        for status in queues:
            each(actions, status)

    get_store().transact(act)
