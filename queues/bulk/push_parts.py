"""The items that a push job pushes: stored beside it in parts, each part one chunk.

They are stored before the job begins, so that it has all of them or does not begin; those without a job are swept a day
later. Clearing them checks in the same transaction that there is no job, and a job checks as it begins that they are
there: of the two one conflicts, however late a commit lands. Each part is pushed and cleared in the transaction that
moves the job's mark.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from queues.items.equal_ids import minted_before
from queues.keys.keyspace import Keyspace, first_id
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction
from queues.model import records
from queues.model.priority import Priority

Arrival = tuple[bytes, Priority | None]
#: Items of one part, and bytes of their values: with its header a part is no larger than the largest value.
MAX_ITEMS, _BYTES = 200, records.MAX_VALUE_SIZE
#: Bytes of parts that one transaction lays down, unless it is a single one.
_STEP_BYTES = 900_000
#: Parts that one transaction clears.
_CLEARED = 10
#: What was laid down and never begun is left alone for so long, in milliseconds.
KEPT_MS = 24 * 3600 * 1000


def parts_of(arrivals: Iterable[Arrival]) -> Iterator[bytes]:
    """Yield the parts that hold these items, in their order."""
    part: list[Arrival] = []
    size = 0
    for value, priority in arrivals:
        taken = len(value) + len(json.dumps(priority, ensure_ascii=False).encode())
        if part and (len(part) == MAX_ITEMS or size + taken > _BYTES):
            yield _encode(part)
            part, size = [], 0
        part.append((value, priority))
        size += taken
    if part:
        yield _encode(part)


def _encode(part: Sequence[Arrival]) -> bytes:
    header = {"priorities": [priority for _, priority in part], "sizes": [len(value) for value, _ in part]}
    return records.encode(header, b"".join(value for value, _ in part))


def read_part(tr: ReadTransaction, keyspace: Keyspace, job_id: bytes, n: int) -> list[Arrival] | None:
    """Return the items of a part; None when it is not there."""
    record = tr.get(keyspace.incoming.key(job_id, n)).wait()
    if record is None:
        return None
    header, values = records.decode(record)
    arrivals, at = list[Arrival](), 0
    for priority, size in zip(header["priorities"], header["sizes"], strict=True):
        arrivals.append((values[at : at + size], priority))
        at += size
    return arrivals


def lay_down(kv: KeyValueStore, keyspace: Keyspace, job_id: bytes, arrivals: Iterable[Arrival]) -> None:
    """Write items beside a job that has not begun. The caller clears them when that fails."""
    step: list[tuple[bytes, bytes]] = []
    size, began = 0, False

    def write(tr: Transaction) -> None:
        if not began:
            job, laid = tr.get(keyspace.bulk.key(job_id)), tr.get_key(*keyspace.incoming.below(job_id))
            if job.wait() is not None or laid.wait() is not None:
                raise minted_before()
        for key, part in step:
            tr.set(key, part)

    for n, part in enumerate(parts_of(arrivals)):
        if step and size + len(part) > _STEP_BYTES:
            kv.transact(write, background=True)
            step, size, began = [], 0, True
        step.append((keyspace.incoming.key(job_id, n), part))
        size += len(part)
    kv.transact(write, background=True)


def clear(kv: KeyValueStore, keyspace: Keyspace, job_id: bytes) -> None:
    """Forget, in steps, what was laid down for a job, unless it has begun.

    The first step keeps it from beginning. One transaction would hold up all other callers: for a second where there
    are 500 MB.
    """
    begin, end = keyspace.incoming.below(job_id)

    def forget(tr: Transaction) -> bool:
        job, parts = tr.get(keyspace.bulk.key(job_id)), tr.get_range(begin, end, limit=_CLEARED)
        found = parts.wait()
        if job.wait() is not None or not found:
            return False
        tr.use_reserve()
        tr.clear_range(begin, found[-1][0] + b"\0")
        return len(found) == _CLEARED

    while kv.transact(forget, background=True):
        pass


def sweep_incoming(kv: KeyValueStore, keyspace: Keyspace, *, before_ms: int) -> None:
    """Forget what was laid down before this time for jobs that never began, or that are forgotten."""
    begin, end = keyspace.incoming.before(first_id(before_ms))
    while True:

        def look(tr: ReadTransaction, begin: bytes = begin) -> tuple[bytes, bool] | None:
            key = tr.get_key(begin, end).wait()
            if key is None:
                return None
            job_id = keyspace.incoming.elements(key)[0]
            return job_id, tr.get(keyspace.bulk.key(job_id)).wait() is not None

        found = kv.read(look, background=True)
        if found is None:
            return
        job_id, wanted = found
        if not wanted:  # as of that look: clearing looks again
            clear(kv, keyspace, job_id)
        begin = keyspace.incoming.below(job_id)[1]
