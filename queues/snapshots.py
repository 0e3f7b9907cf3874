"""Snapshots: the status of many queues at one read version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from queues.attached import status as attached_status
from queues.attached.counts import AttachedCounts
from queues.config import Config
from queues.keyspace import Keyspace, total
from queues.kv.port import ReadTransaction, Result
from queues.status import QueueStatus, Snapshot, begin_status


def read_statuses(
    tr: ReadTransaction,
    keyspace: Keyspace,
    queue_ids: Sequence[int],
    *,
    at_time: datetime,
    previous: Snapshot | None,
    preview: int,
    counts: AttachedCounts,
) -> Snapshot:
    """Read many queues in three rounds of parallel reads; only changed ones past the first round.

    Others write attached queues without telling us, so those are read each time.
    """
    keys = {queue_id: keyspace.queue(queue_id) for queue_id in queue_ids}
    known = {} if previous is None else previous.queues
    directory = tr.get(keyspace.directory_change)
    pending = {queue_id: tr.get(keys[queue_id].change) for queue_id in keys}
    changes = {queue_id: total(read.wait()) for queue_id, read in pending.items()}
    found: dict[int, QueueStatus] = {}
    configs: dict[int, Result[bytes | None]] = {}
    for queue_id, change in changes.items():
        old = known.get(queue_id)
        same = previous is not None and previous.changes.get(queue_id) == change
        if not same or (old is not None and old.attached):
            configs[queue_id] = tr.get(keyspace.config(queue_id))
        elif old is not None:
            found[queue_id] = old
    reads: dict[int, Callable[[], QueueStatus]] = {}
    for queue_id, read in configs.items():
        record = read.wait()
        if record is not None:
            config, change = Config.decode(record), changes[queue_id]
            reads[queue_id] = (
                attached_status.begin_status(tr, keys[queue_id], config, change, preview, counts=counts, now=at_time)
                if config.attached
                else begin_status(tr, keys[queue_id], config, change, preview)
            )
    for queue_id, finish in reads.items():
        status = finish()
        found[queue_id] = attached_status.settle(status, known.get(queue_id)) if status.attached else status
    return Snapshot(
        version=tr.get_read_version(),
        at=at_time,
        directory_change=total(directory.wait()),
        queues={queue_id: found[queue_id] for queue_id in keys if queue_id in found},
        changes=changes,
    )
