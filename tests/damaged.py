"""Damage done to the file of an embedded store, by seed."""

import random
import shutil
from pathlib import Path

from queues import open_store

PAGE = 4_096
KINDS = ("cut", "zeros", "noise", "heads", "meta", "much")


def make_store(folder: Path) -> str:
    """Make a store with a few queues, leases and acts, and return its URL."""
    rng = random.Random(7)
    url = f"lmdb:{folder}"
    with open_store(url) as store:
        ann = store.actions("ann")
        for name in ("jobs", "mail", "other"):
            ann.create_queue(name)
            store.queue(name).push_many([(rng.randbytes(rng.choice([50, 300, 3_000])), n) for n in range(150)])
        store.queue("jobs").lease_many(3, seconds=100)
        store.queue("jobs").pop_many(50)
        ann.pause("mail", reason="r")
    return url


def copy_damaged(store: Path, to: Path, kind: str, seed: int) -> bool:
    """Copy a store's file into a new folder and damage it there; say whether the copy must be found damaged."""
    rng = random.Random(f"{kind} {seed}")
    to.mkdir()
    data = to / "data.mdb"
    shutil.copy(store / "data.mdb", data)
    size = data.stat().st_size
    pages = size // PAGE
    with data.open("r+b") as file:

        def write(at: int, what: bytes) -> None:
            file.seek(at)
            file.write(what)

        if kind == "cut":
            file.truncate(rng.randrange(1, size // 2))
        elif kind == "zeros":
            write(rng.randrange(2, pages) * PAGE, bytes(PAGE))
        elif kind == "noise":
            write(rng.randrange(2, pages) * PAGE, rng.randbytes(PAGE))
        elif kind == "heads":
            at = rng.randrange(2, pages) * PAGE
            for _ in range(20):
                write(at + rng.randrange(64), rng.randbytes(1))
        elif kind == "meta":
            for at in (0, PAGE):
                write(at + 16 + rng.randrange(8), rng.randbytes(4))
        else:
            for _ in range(pages // 2):
                write(rng.randrange(2, pages) * PAGE, rng.randbytes(PAGE))
    return kind in ("cut", "much")
