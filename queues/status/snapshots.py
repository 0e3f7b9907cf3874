"""Snapshots: the status of many queues at one read version."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from queues.catalog import directory
from queues.items.counters import total
from queues.keys.keyspace import Keyspace
from queues.kv.port import ReadTransaction, Result
from queues.model.config import Config
from queues.model.records import UNREADABLE, why
from queues.status import attached_status
from queues.status.attached_counts import AttachedCounts
from queues.status.status import QueueStatus, Snapshot, begin_status, unreadable_status


def read_statuses(
    tr: ReadTransaction,
    keyspace: Keyspace,
    queue_ids: Sequence[int],
    *,
    at_time: datetime,
    previous: Snapshot | None,
    preview: int,
    counts: AttachedCounts,
    tolerant: bool,
) -> Snapshot:
    """Read many queues in three rounds of parallel reads; only changed ones past the first round.

    Other programs write attached queues without a change key, so those are read each time, as are unreadable ones,
    which raise unless the caller is `tolerant`.
    """
    known = {} if previous is None else previous.queues
    listed = tr.get(keyspace.directory_change)
    pending = {queue_id: tr.get(keyspace.change(queue_id)) for queue_id in queue_ids}
    changes = {queue_id: total(read.wait()) for queue_id, read in pending.items()}
    found: dict[int, QueueStatus] = {}
    configs: dict[int, Result[bytes | None]] = {}
    for queue_id, change in changes.items():
        old = known.get(queue_id)
        same = previous is not None and previous.changes.get(queue_id) == change
        if not same or (old is not None and (old.attached or old.unreadable)):
            configs[queue_id] = tr.get(keyspace.configs.key(queue_id))
        elif old is not None:
            found[queue_id] = old
    reads: dict[int, Callable[[], QueueStatus]] = {}
    failed: dict[int, Exception] = {}
    for queue_id, read in configs.items():
        record = read.wait()
        if record is None:
            continue
        try:
            config, change = _config(record), changes[queue_id]
            reads[queue_id] = (
                attached_status.begin_status(tr, keyspace, config, change, preview, counts=counts, now=at_time)
                if config.attached
                else begin_status(tr, keyspace, config, change, preview, at_time)
            )
        except UNREADABLE as error:
            if not tolerant:
                raise
            failed[queue_id] = error
    for queue_id, finish in reads.items():
        try:
            status = finish()
        except UNREADABLE as error:
            if not tolerant:
                raise
            failed[queue_id] = error
            continue
        found[queue_id] = attached_status.settle(status, known.get(queue_id)) if status.attached else status
    if failed:
        found |= _unreadable(tr, keyspace, failed, changes, known)
    return Snapshot(
        version=tr.get_read_version(),
        at=at_time,
        directory_change=total(listed.wait()),
        queues={queue_id: found[queue_id] for queue_id in changes if queue_id in found},
        changes=changes,
    )


#: Configs seldom change.
_config = lru_cache(maxsize=2_048)(Config.decode)


def _unreadable(
    tr: ReadTransaction,
    keyspace: Keyspace,
    failed: Mapping[int, Exception],
    changes: Mapping[int, int],
    known: Mapping[int, QueueStatus],
) -> dict[int, QueueStatus]:
    """Return statuses of unreadable queues; the same object as before where nothing differs."""
    unchanged = {i for i in failed if i in known and known[i].change == changes[i]}  # the rest may have been renamed
    names = {queue_id: known[queue_id].name for queue_id in unchanged}
    if names.keys() != failed.keys():
        names |= {queue_id: name for name, queue_id in directory.names(tr, keyspace).items() if queue_id in failed}
    made = {
        queue_id: unreadable_status(queue_id, names.get(queue_id, str(queue_id)), changes[queue_id], why(error))
        for queue_id, error in failed.items()
    }
    return {queue_id: known[queue_id] if known.get(queue_id) == status else status for queue_id, status in made.items()}
