"""In-process queue: a double-ended priority queue for threads, without a store.

    from queues.local import PriorityQueue

    jobs = PriorityQueue()
    jobs.put((5, "resize"))
    jobs.put((1, "remind"), due=datetime.now(UTC) + timedelta(hours=1))
    jobs.get()          # (5, "resize"): the other item is not due yet

It extends the standard library's `queue.PriorityQueue` by the other end, peeks, and delayed items.
"""

from queue import Empty, Full

from queues.local.priority_queue import PriorityQueue, ShutDown

__all__ = ["Empty", "Full", "PriorityQueue", "ShutDown"]
