"""Verbs for coroutines: `AsyncStore` and `AsyncQueue`.

    async with AsyncStore(open_store("lmdb:var/store")) as store:
        jobs = await store.queue("jobs")
        item = await jobs.pop_min(wait=5)

No thread waits for a coroutine's push, pop or lease: it joins the batch that serves concurrent requests, and the
answers of a batch wake the event loop once.
"""
