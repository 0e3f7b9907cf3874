"""pqadmin's queue core: named, durable, double-ended priority queues on an ordered key-value store.

    from queues import open_store

    with open_store("lmdb:var/store") as store:
        jobs = store.create_queue("jobs")
        jobs.push(b"value", priority=5)
        item = jobs.pop_min()

Plain Python: no Django, no server. Rules are written once, against the transactions of `queues.kv`.
"""

from queues.actions.actions import Actions
from queues.actions.audited_action import RequestKey
from queues.actions.item_actions import Changed
from queues.actions.purge import Purged
from queues.actions.take import Popped
from queues.actions.undo import Undone
from queues.aio.queue import AnyAsyncQueue, AsyncFifoQueue, AsyncPriorityQueue, AsyncQueue
from queues.aio.store import AsyncSpace, AsyncStore
from queues.audit.audit_log import AuditEntry
from queues.bulk.bulk_job import Job
from queues.consumers.consumer import Consumer, Consumers
from queues.items.scan import Query
from queues.kv.port import ReadTransaction, Transaction
from queues.model.attempt_log import Attempt
from queues.model.bands import Band
from queues.model.codec import CodecName, Raw
from queues.model.config import Pause
from queues.model.duration import Duration, Wait
from queues.model.foreign_tuples import ForeignKey
from queues.model.item import Item, Page
from queues.model.paging import RecordPage
from queues.model.priority import Priority
from queues.opening import open_store
from queues.operations.idempotency import Answer
from queues.operations.lease import Lease
from queues.operations.search import Found
from queues.operations.space import Space
from queues.queue import AnyQueue, FifoQueue, PriorityQueue, Queue
from queues.status.status import QueueStatus, Snapshot, Totals
from queues.store import Store
from queues.trash.trash import TrashEntry

__all__ = [
    "Actions",
    "Answer",
    "AnyAsyncQueue",
    "AnyQueue",
    "AsyncFifoQueue",
    "AsyncPriorityQueue",
    "AsyncQueue",
    "AsyncSpace",
    "AsyncStore",
    "Attempt",
    "AuditEntry",
    "Band",
    "Changed",
    "CodecName",
    "Consumer",
    "Consumers",
    "Duration",
    "FifoQueue",
    "ForeignKey",
    "Found",
    "Item",
    "Job",
    "Lease",
    "Page",
    "Pause",
    "Popped",
    "Priority",
    "PriorityQueue",
    "Purged",
    "Query",
    "Queue",
    "QueueStatus",
    "Raw",
    "ReadTransaction",
    "RecordPage",
    "RequestKey",
    "Snapshot",
    "Space",
    "Store",
    "Totals",
    "Transaction",
    "TrashEntry",
    "Undone",
    "Wait",
    "open_store",
]
