"""The in-process twin: a double-ended priority queue for the threads of one process, without a store.

    from queues.local import PriorityQueue

    jobs = PriorityQueue()
    jobs.put((5, "resize"))
    jobs.put((1, "remind"), due=datetime.now(UTC) + timedelta(hours=1))
    jobs.get()          # (5, "resize"): the other one is not due yet

The standard library's `queue.PriorityQueue` and, beyond it, the other end, peeks, and items that become due.
"""

from queue import Empty, Full

from queues.local.priority_queue import PriorityQueue, ShutDown

__all__ = ["Empty", "Full", "PriorityQueue", "ShutDown"]
