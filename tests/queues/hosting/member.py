"""A user of the tests, of a group that shares a store: each line of input is a verb, each line of output its answer.

`python -m tests.queues.hosting.member URL USER GROUP`
"""

import os
import sys
import tempfile

from queues import PriorityQueue, open_store

with tempfile.TemporaryDirectory() as folder, open_store(f"lmdb:{folder}/store") as warm:
    warm.create_queue("jobs").push(b"x", priority=1)  # imports what the user may not be able to read

url, user, group = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.setgroups([])
os.setgid(group)
os.setuid(user)
os.umask(0o002)
with open_store(url) as store:
    if not store.queues():
        store.create_queue("jobs")
    queue = store.queue("jobs")
    assert isinstance(queue, PriorityQueue)
    print("at work", flush=True)
    for line in sys.stdin:
        verb, _, value = line.strip().partition(" ")
        if verb == "push":
            queue.push(value.encode(), priority=1)
            print("done", flush=True)
        else:
            item = queue.pop_min()
            print(item.raw.decode() if item else "none", flush=True)
