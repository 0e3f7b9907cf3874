"""pqadmin's queue core: named, durable, double-ended priority queues on an ordered key-value store.

    from queues import open_store

    with open_store("lmdb:var/store") as store:
        jobs = store.create_queue("jobs")
        jobs.push(b"value", priority=5)
        item = jobs.pop_min()

Plain Python: no Django, no server. Rules are written once, against the transactions of `queues.kv`.
"""

from queues.acts import Acts, Popped
from queues.attached.acts import Purged
from queues.audit import AuditEntry, AuditPage
from queues.bands import Band
from queues.config import Pause
from queues.foreign import ForeignKey
from queues.item import Item, Page
from queues.item_acts import Changed, Undone
from queues.jobs import Job, JobPage
from queues.kv.port import ReadTransaction, Transaction
from queues.leases import Lease
from queues.priority import Priority
from queues.queue import Queue
from queues.search import Found, Query
from queues.status import QueueStatus, Snapshot, Totals
from queues.store import Store, open_store
from queues.trash import TrashEntry, TrashPage

__all__ = [
    "Acts",
    "AuditEntry",
    "AuditPage",
    "Band",
    "Changed",
    "ForeignKey",
    "Found",
    "Item",
    "Job",
    "JobPage",
    "Lease",
    "Page",
    "Pause",
    "Popped",
    "Priority",
    "Purged",
    "Query",
    "Queue",
    "QueueStatus",
    "ReadTransaction",
    "Snapshot",
    "Store",
    "Totals",
    "Transaction",
    "TrashEntry",
    "TrashPage",
    "Undone",
    "open_store",
]
