"""Keys of a store; the keys of one queue are built in queues/keys/queue_keys.py.

Only these two modules and item_suffix.py build keys or decode them.

Elements are packed by FoundationDB's tuple layer on every engine, under one root, by default ("pq",):

    ("store",)                            = record       format version, store id; checked when a store is opened
    ("clock",)                            = record       anchor of the store's time line: see queues/serving/clock.py
    ("store", "v")                        = total        directory change: ADD 1 whenever a name comes, goes or changes
    ("name", name)                        = id           8 bytes
    ("c", id)                             = record       config: see queues/model/config.py; written by operators only
    ("q", id, "w")  ("q", id, "v")        = total        wake key, change key: ADD 1, outside the generation
    ("q", id, gen, "i", priority, count, rand) = value   ready: the recipe's key, the raw value
    ("q", id, gen, "i", count, rand)      = value        ready, FIFO: the Queues recipe's key
    ("q", id, gen, "d")                   = ""           mark: ready items of the generation may have attempts
    ("q", id, gen, "d", due_ms, rand)     = record       delayed
    ("q", id, gen, "n", state, side)      = total        depth(state) = in − out, exact, one ADD per transaction; leased
                                                         and dead items are outside of generations: gen is 0
    ("q", id, gen, "b", band, side)       = total        the priority mix; bands come from the config
    ("q", id, "o", state, rand)           = place        by id, and by age: the first ready key is the oldest
    ("q", id, gen, "o", state, rand)      = place        the same, for what is ready or delayed in generations after the
                                                         first: a purge takes it along
    ("q", id, "l", rand)                  = record       lease
    ("q", id, "e", expires_ms, rand)      = ""           leases by expiry
    ("q", id, "z", died_ms, rand)         = record       dead
    ("q", id, "T", verb)                  = total        traffic: push, pop, restore …; hand_pop …: by people
    ("q", id, "h", bucket)                = total        waits of taken items, √2-wide buckets of milliseconds
    ("q", id, "f")                        = version      drift flag: a pop found nothing where counters said otherwise
    ("q", id, "r", "f")                   = record       staging: the fulfiller; see queues/serving/
    ("q", id, "r", "q", ms, request)      = record       a request to the fulfiller
    ("q", id, "r", "a", ms, request, n)   = bytes        its result, in parts, until the process takes it
    ("trash", "r", trash_id)              = record       what an operator's action removed
    ("trash", "e", deadline_ms, trash_id) = ""           trash by deadline
    ("audit", "r", audit_id)              = record       actor, time, verb, reason
    ("audit", "q", id, audit_id)          = ""           audit by queue
    ("audit", "a", actor, audit_id)       = ""           audit by actor
    ("audit", "i", item, audit_id)        = ""           audit by item: 20 bytes, or the text of an attached queue's id
    ("attached",) + prefix                = id           attached queues by their raw prefix: none overlaps another
    ("trash", "p", trash_id, n, part)     = bytes        what does not fit into a trash record
    ("job", "copy")                       = record       in the target of an unfinished copy: its progress
    ("job", "merge", id)                  = ""           the queue has two generations, which are being merged
    ("job", "bulk", job_id)               = record       a bulk job and its progress
    ("job", "part", job_id, n)            = trash_id     trash record of one of its chunks
    ("job", "in", job_id, n)              = record       items that it pushes, in parts: see queues/bulk/incoming.py
    ("job", "run", job_id)                = ""           it has not ended
    ("job", "v")                          = total        job change: ADD 1 whenever a job begins, ends or resumes
    ("due", second, id)                   = ""           something delayed or leased of the queue falls due in that
                                                         second, or did; second 0: the sweeper is to look
    ("due", "w")                          = total        wake key of sweepers: ADD 1 with what falls due soon
    ("history", id, resolution, start)    = block        points of a queue's history: see queues/history/
    ("elected", role)                     = record       the leader of a role: see queues/serving/leadership.py
    ("slot", client, n)                   = mark         result of a commit, on a cluster: see queues/kv/slots.py
    ("app", "k", space, *key)             = bytes        a key of the application: see queues/operations/space.py
    ("app", "v", space)                   = total        change key of a space: ADD 1 with every write
    ("idem", "k", digest)                 = record       answer of a request: queues/operations/idempotency.py
    ("idem", "k", digest, n)              = bytes        further parts of a large answer
    ("idem", "t", at_ms, digest)          = ""           answers by the time of their requests

Items of attached queues lie outside of the root, under the prefix that was attached: see `AttachedKeys`.
`side` is "in" or "out". Totals are 8 bytes little-endian and only grow, except the "in" totals of a generation that is
merged into the next.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

from queues.keys.queue_keys import CHANGE, QueueKeys
from queues.model import ids
from queues.model.tuples import FIRST, LAST, WHOLE_END, WHOLE_FIRST, Range, behind, children, pack, unpack_behind


def _short(actor: str) -> str:
    """Return an actor's name, or a digest of one that is too long for a key."""
    name = actor.encode("utf-8", "surrogatepass")
    return actor if len(name) <= _MAX_ACTOR and name == actor.encode("utf-8", "ignore") else sha256(name).hexdigest()


#: Bytes of an actor's name; an audit key then stays below half of a key's limit.
_MAX_ACTOR = 200


def _digest(key: str) -> bytes:
    """Return the digest of an idempotency key: keys of any length and content stay apart."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def _item_element(item: str) -> bytes | str:
    """Return an item's id as a key element: bytes, or a foreign id as text."""
    return ids.parse(item) or _short(item)


class SpaceKeys:
    """The keys of one space of the application."""

    def __init__(self, prefix: bytes, change: bytes) -> None:
        #: Followed by the packed elements of the application's key; see `pack` and `elements`.
        self.prefix = prefix
        self.change = change

    @staticmethod
    def pack(elements: tuple[Any, ...]) -> bytes:
        """Return the elements of an application's key, packed; raise `UnicodeEncodeError`."""
        return pack(*elements)

    def elements(self, key: bytes) -> tuple[Any, ...]:
        """Return the elements of the application's key."""
        return unpack_behind(key, len(self.prefix))

    def key(self, packed: bytes) -> bytes:
        """Return the key that holds the value of an application's key."""
        return self.prefix + packed

    def below(self, packed: bytes) -> Range:
        """Return the range of all keys with more elements than these."""
        return children(self.prefix + packed)


class Keyspace:
    """The keys of one root. Ranges are (begin, end) with the end excluded."""

    def __init__(self, root: tuple[Any, ...]) -> None:
        self.root = pack(*root)
        self.range = children(self.root)
        self.store = self.root + pack("store")
        self.clock = self.root + pack("clock")
        self.directory_change = self.root + pack("store", "v")
        self._names = self.root + pack("name")
        self._configs = self.root + pack("c")
        self._queues = self.root + pack("q")
        #: Keys of the queues used last.
        self._queue_keys = lru_cache(maxsize=1_024)(self._make_queue_keys)
        self._trash = self.root + pack("trash", "r")
        self._trash_deadlines = self.root + pack("trash", "e")
        self._trash_parts = self.root + pack("trash", "p")
        self._attached = self.root + pack("attached")
        self._audit = self.root + pack("audit", "r")
        self._audit_queues = self.root + pack("audit", "q")
        self._audit_actors = self.root + pack("audit", "a")
        self._audit_items = self.root + pack("audit", "i")
        self.copy_mark = self.root + pack("job", "copy")
        self._merges = self.root + pack("job", "merge")
        self._bulk = self.root + pack("job", "bulk")
        self._bulk_parts = self.root + pack("job", "part")
        self._incoming = self.root + pack("job", "in")
        self._running = self.root + pack("job", "run")
        self.job_change = self.root + pack("job", "v")
        self.all_merges = children(self._merges)
        self.all_running = children(self._running)
        self.all_bulk = children(self._bulk)
        self.slots = self.root + pack("slot")
        self.all_slots = children(self.slots)
        self._spaces = self.root + pack("app", "k")
        self._space_changes = self.root + pack("app", "v")
        self.all_space_changes = children(self._space_changes)
        self._answers = self.root + pack("idem", "k")
        self._answer_times = self.root + pack("idem", "t")
        self.all_configs = children(self._configs)
        self._elected = self.root + pack("elected")
        self._history = self.root + pack("history")
        self._due = self.root + pack("due")
        self.due_wake = self._due + pack("w")
        #: The due index, the earliest second first.
        self.due_index = self._due + WHOLE_FIRST, self._due + WHOLE_END

    @staticmethod
    def store_at(root: bytes) -> bytes:
        """Return the key of the store record of any store with this root."""
        return root + pack("store")

    @property
    def content(self) -> tuple[Range, ...]:
        """The ranges of a copy: all keys but clock, slots, store record and copy mark."""
        begin, end = self.range
        return (
            (begin, self.clock),
            (self.clock + FIRST, self.copy_mark),
            (self.copy_mark + FIRST, self.all_slots[0]),
            (self.all_slots[1], self.store),
            (self.store + FIRST, end),
        )

    def space(self, name: str) -> SpaceKeys:
        """Return the keys of the space of this name."""
        return SpaceKeys(self._spaces + pack(name), self._space_changes + pack(name))

    def space_of(self, key: bytes) -> str:
        """Return the name of the space that a key of `all_space_changes` belongs to."""
        name: str = unpack_behind(key, len(self._space_changes))[0]
        return name

    def idempotency(self, key: str, *part: int) -> bytes:
        """Return the key that holds the answer of a request with this idempotency key, or a further part of it."""
        return self._answers + pack(_digest(key), *part)

    def idempotency_time(self, ms: int, key: str) -> bytes:
        """Return the key by which the sweep finds an answer."""
        return self._answer_times + pack(ms, _digest(key))

    def idempotency_times(self, before_ms: int) -> Range:
        """Return the range of such keys from before this time, the oldest first."""
        return self._answer_times + FIRST, self._answer_times + pack(max(0, before_ms))

    def idempotency_of(self, time_key: bytes) -> Range:
        """Return the range that holds the answer that such a key tells of, with all its parts."""
        key = self._answers + pack(unpack_behind(time_key, len(self._answer_times))[1])
        return key, children(key)[1]

    def name(self, name: str) -> bytes:
        """Return the key that holds the id of the queue of this name."""
        return self._names + pack(name)

    def names(self, prefix: str = "", after: str | None = None) -> Range:
        """Return the range of names that begin with `prefix` and sort behind `after`."""
        begin, end = children(self._names)
        if prefix:
            begin = self.name(prefix)[:-1]
            # A prefix that ends inside an element: the next byte of any continuation is UTF-8, below 0xff.
            end = begin + LAST
        if after is not None:
            begin = max(begin, self.name(after) + FIRST)
        return begin, end

    def name_of(self, key: bytes) -> str:
        """Return the name in a key of `names`."""
        name: str = unpack_behind(key, len(self._names))[0]
        return name

    def config(self, queue_id: int) -> bytes:
        """Return the key of a queue's config."""
        return self._configs + pack(queue_id)

    def id_of_config(self, key: bytes) -> int:
        """Return the queue id in the key of a config."""
        queue_id: int = unpack_behind(key, len(self._configs))[0]
        return queue_id

    def queues_behind(self, queue_id: int | None) -> Range:
        """Return the range of the keys of all queues with a larger id."""
        begin, end = children(self._queues)
        return begin if queue_id is None else children(self._queues + pack(queue_id))[1], end

    def id_of_queue(self, key: bytes) -> int:
        """Return the queue id in a key of `queues_behind`."""
        queue_id: int = unpack_behind(key, len(self._queues))[0]
        return queue_id

    def change(self, queue_id: int) -> bytes:
        """Return the change key of one queue, without building its other keys."""
        return self._queues + pack(queue_id) + CHANGE

    def queue(self, queue_id: int) -> QueueKeys:
        """Return the keys of one queue."""
        return self._queue_keys(queue_id)

    def _make_queue_keys(self, queue_id: int) -> QueueKeys:
        return QueueKeys(self._queues + pack(queue_id), self._due, queue_id)

    def elected(self, role: str) -> bytes:
        """Return the key of a role's leader."""
        return self._elected + pack(role)

    def history(self, queue_id: int, resolution: str | None = None) -> Range:
        """Return the range of a queue's history, or of one resolution, the oldest block first."""
        return children(self._history + (pack(queue_id) if resolution is None else pack(queue_id, resolution)))

    def history_block(self, queue_id: int, resolution: str, start: int) -> bytes:
        """Return the key of the block that begins at this second."""
        return self._history + pack(queue_id, resolution, start)

    def due_mark(self, second: int, queue_id: int) -> bytes:
        """Return the entry of the due index for a queue and a second."""
        return self._due + pack(second, queue_id)

    def read_mark(self, key: bytes) -> tuple[int, int]:
        """Return (second, queue id) of an entry of the due index."""
        second, queue_id = unpack_behind(key, len(self._due))
        return second, queue_id

    def trash(self, trash_id: bytes) -> bytes:
        """Return the key of a trash record."""
        return self._trash + pack(trash_id)

    def trash_deadline(self, deadline_ms: int, trash_id: bytes) -> bytes:
        """Return the key of a trash record's deadline."""
        return self._trash_deadlines + pack(deadline_ms, trash_id)

    def trash_part(self, trash_id: bytes, n: int, part: str) -> bytes:
        """Return the key of a part of a trash record."""
        return self._trash_parts + pack(trash_id, n, part)

    def trash_parts(self, trash_id: bytes) -> Range:
        """Return the range of all parts of a trash record."""
        return children(self._trash_parts + pack(trash_id))

    @property
    def trash_deadlines(self) -> Range:
        """The range of all deadlines, the first one first."""
        return children(self._trash_deadlines)

    def deadline_of(self, key: bytes) -> int:
        """Return the milliseconds of a deadline's key."""
        deadline_ms: int = unpack_behind(key, len(self._trash_deadlines))[0]
        return deadline_ms

    def trash_due(self, ms: int) -> Range:
        """Return the range of deadlines up to this time, the first one first."""
        begin, _ = children(self._trash_deadlines)
        return begin, self._trash_deadlines + pack(ms + 1)

    def merge(self, queue_id: int) -> bytes:
        """Return the key that marks a queue whose generations are to be merged."""
        return self._merges + pack(queue_id)

    def id_of_merge(self, key: bytes) -> int:
        """Return the queue id in a key of `all_merges`."""
        queue_id: int = unpack_behind(key, len(self._merges))[0]
        return queue_id

    def bulk(self, job_id: bytes) -> bytes:
        """Return the key of a bulk job."""
        return self._bulk + pack(job_id)

    def all_bulk_before(self, job_id: bytes | None) -> Range:
        """Return the range of bulk jobs that began before this one."""
        begin, end = self.all_bulk
        return begin, end if job_id is None else self.bulk(job_id)

    def bulk_begun_by(self, ms: int) -> Range:
        """Return the range of bulk jobs that began before this time, the oldest first."""
        return self.all_bulk[0], self.bulk(max(0, ms).to_bytes(6, "big"))

    def running(self, job_id: bytes) -> bytes:
        """Return the key that marks a bulk job that has not ended."""
        return self._running + pack(job_id)

    def bulk_part(self, job_id: bytes, n: int) -> bytes:
        """Return the key of the trash id of a chunk of a bulk job."""
        return self._bulk_parts + pack(job_id, n)

    def bulk_parts(self, job_id: bytes) -> Range:
        """Return the range of the trash ids of a bulk job, in the order of its chunks."""
        return children(self._bulk_parts + pack(job_id))

    def incoming(self, job_id: bytes, n: int) -> bytes:
        """Return the key of a part of the items that a bulk job pushes."""
        return self._incoming + pack(job_id, n)

    def all_incoming(self, job_id: bytes) -> Range:
        """Return the range of the items that a bulk job pushes, in order."""
        return children(self._incoming + pack(job_id))

    def incoming_laid_by(self, ms: int) -> Range:
        """Return the range of items of bulk jobs that began before this time."""
        return children(self._incoming)[0], self._incoming + pack(max(0, ms).to_bytes(6, "big"))

    def job_of_incoming(self, key: bytes) -> bytes:
        """Return the bulk job id in a key of `incoming`."""
        job_id: bytes = unpack_behind(key, len(self._incoming))[0]
        return job_id

    @staticmethod
    def part_of(key: bytes) -> str:
        """Return which part a key of `trash_parts` holds."""
        part: str = unpack_behind(key, 0)[-1]
        return part

    def attached(self, prefix: bytes) -> bytes:
        """Return the key that says which queue has attached this prefix."""
        return self._attached + prefix

    def attached_before(self, prefix: bytes) -> Range:
        """Return the range of attached prefixes up to this one. The last that overlaps it from above is there."""
        return self._attached + FIRST, self.attached(prefix) + FIRST

    def attached_within(self, prefix: bytes) -> Range:
        """Return the range of attached prefixes that begin with this one."""
        return self.attached(prefix), behind(self.attached(prefix))

    def prefix_of(self, key: bytes) -> bytes:
        """Return the prefix that a key of `attached` stands for."""
        return key[len(self._attached) :]

    def all_trash(self, before: bytes | None = None) -> Range:
        """Return the range of trash records older than `before`."""
        begin, end = children(self._trash)
        return begin, end if before is None else self.trash(before)

    def audit(self, audit_id: bytes) -> bytes:
        """Return the key of an audit record."""
        return self._audit + pack(audit_id)

    def audit_by_queue(self, queue_id: int, audit_id: bytes) -> bytes:
        """Return the key that lists an audit record under its queue."""
        return self._audit_queues + pack(queue_id, audit_id)

    def audit_by_actor(self, actor: str, audit_id: bytes) -> bytes:
        """Return the key that lists an audit record under its actor."""
        return self._audit_actors + pack(_short(actor), audit_id)

    def audit_by_item(self, item: str, audit_id: bytes) -> bytes:
        """Return the key that lists an audit record under an item."""
        return self._audit_items + pack(_item_element(item), audit_id)

    def audits(
        self,
        *,
        queue_id: int | None = None,
        actor: str | None = None,
        item: str | None = None,
        before: bytes | None = None,
        since: bytes | None = None,
    ) -> Range:
        """Return the range of audit keys of one item, queue or actor, or of all."""
        if item is not None:
            prefix = self._audit_items + pack(_item_element(item))
        elif queue_id is not None:
            prefix = self._audit_queues + pack(queue_id)
        elif actor is not None:
            prefix = self._audit_actors + pack(_short(actor))
        else:
            prefix = self._audit
        begin, end = children(prefix)
        return begin if since is None else prefix + pack(since), end if before is None else prefix + pack(before)

    @property
    def audit_indexes(self) -> tuple[Range, ...]:
        """Return the ranges of the audit indexes by queue, actor and item."""
        return children(self._audit_queues), children(self._audit_actors), children(self._audit_items)

    def behind_audit_list(self, key: bytes) -> bytes:
        """Return the beginning of the audit index of the next queue, actor or item."""
        return children(key[: -len(pack(self.last_id(key)))])[1]

    @staticmethod
    def last_id(key: bytes) -> bytes:
        """Return the id that ends a trash or audit key."""
        elements = unpack_behind(key, 0)
        last: bytes = elements[-1]
        return last


def packed_prefix(elements: tuple[Any, ...]) -> bytes:
    """Pack a prefix that is given as a tuple. Raise `ValueError` for what cannot be packed."""
    try:
        return pack(*elements)
    except Exception as error:  # the tuple layer raises whatever it stumbles over
        raise ValueError(str(error)) from error
