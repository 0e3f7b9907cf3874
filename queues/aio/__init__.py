"""Queues for coroutines: the verbs of `Queue` to be awaited, beside those that block a thread.

    jobs = AsyncQueue(store.queue("jobs"))
    item = await jobs.pop_min(wait=5)

No thread waits for a coroutine's request: it goes straight to where requests are served together, and the answers of a
batch wake the event loop once.
"""

from queues.aio.queue import AsyncQueue

__all__ = ["AsyncQueue"]
