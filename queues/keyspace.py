"""Every key that a store has. Only this module builds or takes apart keys.

Elements are packed by FoundationDB's tuple layer on every engine, under one root, by default ("pq",):

    ("store",)                            = record       format version, store id; checked when a store is opened
    ("store", "v")                        = total        directory change: ADD 1 whenever a name comes, goes or changes
    ("name", name)                        = id           8 bytes
    ("c", id)                             = record       config: see queues/config.py; written by operators only
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
    ("q", id, "T", verb)                  = total        traffic: push, pop, restore …
    ("q", id, "h", bucket)                = total        waits of taken items, √2-wide buckets of milliseconds
    ("q", id, "f")                        = version      drift flag: a pop found nothing where counters said otherwise
    ("q", id, "r", "f")                   = record       staging: who serves what others ask for; see queues/staging.py
    ("q", id, "r", "q", ms, request)      = record       takes that a process asks for
    ("q", id, "r", "a", ms, request, n)   = bytes        what it got, in parts, until the process takes it
    ("trash", "r", trash_id)              = record       what was removed by an operator's act
    ("trash", "e", deadline_ms, trash_id) = ""           trash by deadline
    ("audit", "r", audit_id)              = record       who did what, when and why
    ("audit", "q", id, audit_id)          = ""           audit by queue
    ("audit", "a", actor, audit_id)       = ""           audit by actor
    ("audit", "i", item, audit_id)        = ""           audit by item: 20 bytes, or the text of an attached queue's id
    ("attached",) + prefix                = id           attached queues by their raw prefix: none overlaps another
    ("trash", "p", trash_id, n, part)     = bytes        what is too large for its trash record, or too many
    ("job", "copy")                       = record       in the target of a copy that is not finished: how far it is
    ("job", "merge", id)                  = ""           the queue has two generations, which are being merged
    ("job", "bulk", job_id)               = record       an act on many items: what it does, and how far it is
    ("job", "part", job_id, n)            = trash_id     what its chunks put into the trash
    ("job", "in", job_id, n)              = record       items that it is to push, in parts: see queues/incoming.py
    ("job", "run", job_id)                = ""           it has not ended
    ("job", "v")                          = total        job change: ADD 1 whenever one begins, ends or goes on
    ("agenda", second, id)                = ""           something delayed or leased of the queue falls due in that
                                                         second, or did; second 0: whoever sweeps shall look
    ("agenda", "w")                       = total        agenda wake: ADD 1 with what falls due soon
    ("history", id, resolution, start)    = block        points of a queue's history: see queues/history/
    ("elected", role)                     = record       who does a role of which there is one: see queues/elected.py
    ("slot", client, n)                   = mark         what became of a commit, on a cluster: see queues/kv/slots.py

Reserved for verbs to come: ("idem", key).
Items of attached queues lie outside of the root, under the prefix that was attached: see `AttachedKeys`.
`side` is "in" or "out"; totals are 8 bytes little-endian and only grow, but for those in of
a generation that is merged into the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from struct import Struct
from typing import Any, Literal

from fdb import tuple as fdb_tuple

from queues import ids
from queues.packing import pack, pack_bytes, pack_number, pack_priority, unpack_item
from queues.priority import Priority

#: The states that generations hold, and that a purge takes.
IN_GENERATIONS = ("ready", "delayed")
Side = Literal["in", "out"]
STATES = ("ready", "delayed", "leased", "dead")
#: The generation of the totals of leased and dead items, which a purge leaves alone; live ones begin at 1.
OUTSIDE = 0

#: Every encoded element begins with a code between these two, so they bound whatever follows a packed prefix.
_FIRST, _LAST = b"\x00", b"\xff"


def _unpack(key: bytes, prefix_length: int) -> tuple[Any, ...]:
    elements: tuple[Any, ...] = fdb_tuple.unpack(key, prefix_length)
    return elements


def _short(actor: str) -> str:
    """Return an actor's name, or what stands for one that is too long for a key."""
    name = actor.encode("utf-8", "surrogatepass")
    return actor if len(name) <= _MAX_ACTOR and name == actor.encode("utf-8", "ignore") else sha256(name).hexdigest()


#: Bytes; with them an audit key stays below half of what a key may have.
_MAX_ACTOR = 200


def _item_element(item: str) -> bytes | str:
    """Return an item's id as a key holds it: the bytes of one of ours, else its text, or what stands for a long one."""
    return ids.parse(item) or _short(item)


#: Behind the prefix of a queue.
_CHANGE = pack("v")
Range = tuple[bytes, bytes]


def _children(prefix: bytes) -> Range:
    return prefix + _FIRST, prefix + _LAST


def _behind(prefix: bytes) -> bytes:
    """Return the first key behind all that begin with `prefix`, whatever bytes follow."""
    stripped = prefix.rstrip(_LAST)
    return stripped[:-1] + bytes([stripped[-1] + 1])


class Keyspace:
    """The keys of one root. Ranges are (begin, end) with the end excluded."""

    def __init__(self, root: tuple[Any, ...]) -> None:
        self.root = pack(*root)
        self.range = _children(self.root)
        self.store = self.root + pack("store")
        self.directory_change = self.root + pack("store", "v")
        self._names = self.root + pack("name")
        self._configs = self.root + pack("c")
        self._queues = self.root + pack("q")
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
        self.all_merges = _children(self._merges)
        self.all_running = _children(self._running)
        self.all_bulk = _children(self._bulk)
        self.slots = self.root + pack("slot")
        self.all_slots = _children(self.slots)
        self.all_configs = _children(self._configs)
        self._elected = self.root + pack("elected")
        self._history = self.root + pack("history")
        self._agenda = self.root + pack("agenda")
        self.agenda_wake = self._agenda + pack("w")
        #: The agenda, the earliest second first.
        self.agenda = self._agenda + _INT_FIRST, self._agenda + _INT_END

    @staticmethod
    def store_at(root: bytes) -> bytes:
        """Return the key of the store record of a store with this root, be it ours or another's."""
        return root + pack("store")

    @property
    def content(self) -> tuple[Range, ...]:
        """The ranges of what a copy carries: all keys but slots, the store record and the mark of the copy itself."""
        begin, end = self.range
        return (
            (begin, self.copy_mark),
            (self.copy_mark + _FIRST, self.all_slots[0]),
            (self.all_slots[1], self.store),
            (self.store + _FIRST, end),
        )

    def name(self, name: str) -> bytes:
        """Return the key that holds the id of the queue of this name."""
        return self._names + pack(name)

    def names(self, prefix: str = "", after: str | None = None) -> Range:
        """Return the range of names that begin with `prefix` and sort behind `after`."""
        begin, end = _children(self._names)
        if prefix:
            begin = self.name(prefix)[:-1]
            # A prefix that ends inside an element: the next byte of any continuation is UTF-8, below 0xff.
            end = begin + _LAST
        if after is not None:
            begin = max(begin, self.name(after) + _FIRST)
        return begin, end

    def name_of(self, key: bytes) -> str:
        """Return the name that a key of `names` stands for."""
        name: str = _unpack(key, len(self._names))[0]
        return name

    def config(self, queue_id: int) -> bytes:
        """Return the key of a queue's config."""
        return self._configs + pack(queue_id)

    def id_of_config(self, key: bytes) -> int:
        """Return the id of the queue whose config this key holds."""
        queue_id: int = _unpack(key, len(self._configs))[0]
        return queue_id

    def queues_behind(self, queue_id: int | None) -> Range:
        """Return the range of the keys of all queues with a larger id."""
        begin, end = _children(self._queues)
        return begin if queue_id is None else _children(self._queues + pack(queue_id))[1], end

    def id_of_queue(self, key: bytes) -> int:
        """Return the id of the queue that a key of `queues_behind` belongs to."""
        queue_id: int = _unpack(key, len(self._queues))[0]
        return queue_id

    def change(self, queue_id: int) -> bytes:
        """Return the change key of one queue alone: whoever looks at thousands needs no other of theirs."""
        return self._queues + pack(queue_id) + _CHANGE

    def queue(self, queue_id: int) -> QueueKeys:
        """Return the keys of one queue."""
        return QueueKeys(self._queues + pack(queue_id), self, queue_id)

    def elected(self, role: str) -> bytes:
        """Return the key that says who does a role."""
        return self._elected + pack(role)

    def history(self, queue_id: int, resolution: str | None = None) -> Range:
        """Return the range of a queue's history, of all of it or of one resolution, the oldest block first."""
        return _children(self._history + (pack(queue_id) if resolution is None else pack(queue_id, resolution)))

    def history_block(self, queue_id: int, resolution: str, start: int) -> bytes:
        """Return the key of the block that begins at this second."""
        return self._history + pack(queue_id, resolution, start)

    def agenda_mark(self, second: int, queue_id: int) -> bytes:
        """Return the key that says that something of a queue falls due in this second."""
        return self._agenda + pack(second, queue_id)

    def read_mark(self, key: bytes) -> tuple[int, int]:
        """Return (second, queue id) of such a key."""
        second, queue_id = _unpack(key, len(self._agenda))
        return second, queue_id

    def trash(self, trash_id: bytes) -> bytes:
        """Return the key of a trash record."""
        return self._trash + pack(trash_id)

    def trash_deadline(self, deadline_ms: int, trash_id: bytes) -> bytes:
        """Return the key by which a sweep finds a trash record."""
        return self._trash_deadlines + pack(deadline_ms, trash_id)

    def trash_part(self, trash_id: bytes, n: int, part: str) -> bytes:
        """Return the key of a piece of what a trash record stands for."""
        return self._trash_parts + pack(trash_id, n, part)

    def trash_parts(self, trash_id: bytes) -> Range:
        """Return the range of all pieces of what a trash record stands for."""
        return _children(self._trash_parts + pack(trash_id))

    @property
    def trash_deadlines(self) -> Range:
        """The range of all deadlines, the first one first."""
        return _children(self._trash_deadlines)

    def deadline_of(self, key: bytes) -> int:
        """Return the milliseconds of a deadline's key."""
        deadline_ms: int = _unpack(key, len(self._trash_deadlines))[0]
        return deadline_ms

    def trash_due(self, ms: int) -> Range:
        """Return the range of deadlines up to this time, the first one first."""
        begin, _ = _children(self._trash_deadlines)
        return begin, self._trash_deadlines + pack(ms + 1)

    def merge(self, queue_id: int) -> bytes:
        """Return the key that says that a queue's generations are to be merged."""
        return self._merges + pack(queue_id)

    def id_of_merge(self, key: bytes) -> int:
        """Return the id of the queue that a key of `all_merges` stands for."""
        queue_id: int = _unpack(key, len(self._merges))[0]
        return queue_id

    def bulk(self, job_id: bytes) -> bytes:
        """Return the key of an act on many items."""
        return self._bulk + pack(job_id)

    def all_bulk_before(self, job_id: bytes | None) -> Range:
        """Return the range of acts on many items that began before this one."""
        begin, end = self.all_bulk
        return begin, end if job_id is None else self.bulk(job_id)

    def bulk_begun_by(self, ms: int) -> Range:
        """Return the range of acts on many items that began before this time, the oldest first."""
        return self.all_bulk[0], self.bulk(max(0, ms).to_bytes(6, "big"))

    def running(self, job_id: bytes) -> bytes:
        """Return the key that says that an act on many items has not ended."""
        return self._running + pack(job_id)

    def bulk_part(self, job_id: bytes, n: int) -> bytes:
        """Return the key that holds the trash id of a chunk of such an act."""
        return self._bulk_parts + pack(job_id, n)

    def bulk_parts(self, job_id: bytes) -> Range:
        """Return the range of the trash ids of such an act, in the order of its chunks."""
        return _children(self._bulk_parts + pack(job_id))

    def incoming(self, job_id: bytes, n: int) -> bytes:
        """Return the key that holds a part of the items that such an act is to push."""
        return self._incoming + pack(job_id, n)

    def all_incoming(self, job_id: bytes) -> Range:
        """Return the range of the items that such an act is to push, in their order."""
        return _children(self._incoming + pack(job_id))

    def incoming_laid_by(self, ms: int) -> Range:
        """Return the range of items of such acts that began before this time."""
        return _children(self._incoming)[0], self._incoming + pack(max(0, ms).to_bytes(6, "big"))

    def job_of_incoming(self, key: bytes) -> bytes:
        """Return the id of the act that is to push what a key holds."""
        job_id: bytes = _unpack(key, len(self._incoming))[0]
        return job_id

    @staticmethod
    def part_of(key: bytes) -> str:
        """Return which part a key of `trash_parts` holds."""
        part: str = _unpack(key, 0)[-1]
        return part

    def attached(self, prefix: bytes) -> bytes:
        """Return the key that says which queue has attached this prefix."""
        return self._attached + prefix

    def attached_before(self, prefix: bytes) -> Range:
        """Return the range of attached prefixes up to this one; the last that overlaps it from above is there."""
        return self._attached + _FIRST, self.attached(prefix) + _FIRST

    def attached_within(self, prefix: bytes) -> Range:
        """Return the range of attached prefixes that begin with this one."""
        return self.attached(prefix), _behind(self.attached(prefix))

    def prefix_of(self, key: bytes) -> bytes:
        """Return the prefix that a key of `attached` stands for."""
        return key[len(self._attached) :]

    def all_trash(self, before: bytes | None = None) -> Range:
        """Return the range of trash records older than `before`."""
        begin, end = _children(self._trash)
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
        """Return the range of audit keys of one item, queue or actor, or all, older than `before`, not than `since`."""
        if item is not None:
            prefix = self._audit_items + pack(_item_element(item))
        elif queue_id is not None:
            prefix = self._audit_queues + pack(queue_id)
        elif actor is not None:
            prefix = self._audit_actors + pack(_short(actor))
        else:
            prefix = self._audit
        begin, end = _children(prefix)
        return begin if since is None else prefix + pack(since), end if before is None else prefix + pack(before)

    @staticmethod
    def last_id(key: bytes) -> bytes:
        """Return the id that ends a trash or audit key."""
        elements = _unpack(key, 0)
        last: bytes = elements[-1]
        return last


class QueueKeys:
    """The keys of one queue."""

    __slots__ = (
        "_dead",
        "_expiries",
        "_generations",
        "_index",
        "_leases",
        "_prefix",
        "_queue_id",
        "_requests",
        "_results",
        "_store",
        "_totals",
        "_traffic",
        "_waits",
        "change",
        "drift",
        "staging",
        "wake",
    )

    def __init__(self, prefix: bytes, store: Keyspace, queue_id: int) -> None:
        self._prefix = prefix
        self._store = store
        self._queue_id = queue_id
        self._generations: dict[int, GenerationKeys] = {}
        self._index = {state: prefix + pack("o", state) for state in STATES}
        self._leases = prefix + pack("l")
        self._expiries = prefix + pack("e")
        self._dead = prefix + pack("z")
        self._traffic = prefix + pack("T")
        #: The keys of totals that were asked for, by verb and by bucket.
        self._totals: dict[str | int, bytes] = {}
        self._waits = prefix + pack("h")
        self.wake = prefix + pack("w")
        self.change = prefix + _CHANGE
        self.drift = prefix + pack("f")
        self.staging = prefix + pack("r", "f")
        self._requests = prefix + pack("r", "q")
        self._results = prefix + pack("r", "a")

    def generation(self, generation: int) -> GenerationKeys:
        """Return the keys of one generation."""
        keys = self._generations.get(generation)
        if keys is None:
            keys = self._generations[generation] = GenerationKeys(self._prefix + pack(generation))
        return keys

    def index(self, state: str, rand: bytes, generation: int = 1) -> bytes:
        """Return the key under which an item in this state is found by its id."""
        return self.indexed(state, generation) + pack_bytes(rand)

    def by_age(self, state: str, generation: int = 1) -> Range:
        """Return the range of an index, oldest first."""
        return _children(self.indexed(state, generation))

    def indexes(self, state: str, generations: Sequence[int]) -> list[Range]:
        """Return the ranges of every index of a state, in these generations."""
        return [self.by_age(state, generation) for generation in (generations if state in IN_GENERATIONS else (1,))]

    def rand_of_index(self, state: str, key: bytes) -> bytes:
        """Return the id that an index key stands for."""
        rand: bytes = _unpack(key, len(self._prefix))[-1]
        return rand

    def indexed(self, state: str, generation: int) -> bytes:
        """Return what the index keys of a state begin with, before the packed id."""
        if generation > 1 and state in IN_GENERATIONS:
            return self.generation(generation).indexed(state)
        return self._index[state]

    def traffic(self, verb: str) -> bytes:
        """Return the key of a traffic total."""
        key = self._totals.get(verb)
        if key is None:
            key = self._totals[verb] = self._traffic + pack(verb)
        return key

    def all_traffic(self) -> Range:
        """Return the range of traffic totals."""
        return _children(self._traffic)

    def verb_of(self, key: bytes) -> str:
        """Return the verb that a traffic key counts."""
        verb: str = _unpack(key, len(self._traffic))[0]
        return verb

    def wait(self, bucket: int) -> bytes:
        """Return the key of a bucket of the wait histogram."""
        key = self._totals.get(bucket)
        if key is None:
            key = self._totals[bucket] = self._waits + pack(bucket)
        return key

    def all_waits(self) -> Range:
        """Return the range of the wait histogram, the shortest waits first."""
        return _children(self._waits)

    def bucket_of(self, key: bytes) -> int:
        """Return the bucket that a key of `all_waits` counts."""
        bucket: int = _unpack(key, len(self._waits))[0]
        return bucket

    @property
    def agenda_wake(self) -> bytes:
        """The key that tells whoever sweeps of something that falls due soon."""
        return self._store.agenda_wake

    def agenda_mark(self, second: int) -> bytes:
        """Return the key that says that something of the queue falls due in this second."""
        return self._store.agenda_mark(second, self._queue_id)

    @property
    def everything(self) -> Range:
        """The range of all keys of the queue."""
        return _children(self._prefix)

    def elements(self, key: bytes) -> tuple[Any, ...]:
        """Return what a key of the queue says behind its id."""
        return _unpack(key, len(self._prefix))

    def behind(self, *elements: Any) -> bytes:
        """Return the first place behind all keys of the queue that begin with these elements."""
        return self._prefix + pack(*elements) + _LAST

    def lease(self, rand: bytes) -> bytes:
        """Return the key of an item's lease."""
        return self._leases + pack(rand)

    def leases(self) -> Range:
        """Return the range of leases."""
        return _children(self._leases)

    def expiry(self, suffix: bytes) -> bytes:
        """Return the key of a lease by its expiry, or of the place that a cursor names."""
        return self._expiries + suffix

    def expiries(self) -> Range:
        """Return the range of leases by expiry, the next one first."""
        return _children(self._expiries)

    def expired_by(self, ms: int) -> Range:
        """Return the range of leases that have ended at this time, the first to end first."""
        return _children(self._expiries)[0], self.expiry(pack(ms + 1))

    def expiry_suffix_of(self, key: bytes) -> bytes:
        """Return the part of an expiry key that orders leases."""
        return key[len(self._expiries) :]

    def expires_ms(self, key: bytes) -> int:
        """Return when the lease of an expiry key ends, in milliseconds."""
        expires_ms: int = _unpack(key, len(self._expiries))[0]
        return expires_ms

    def request(self, ms: int, request: bytes) -> bytes:
        """Return the key of takes that a process asks for."""
        return self._requests + pack(ms, request)

    def requests(self, ms: int | None = None) -> Range:
        """Return the range of such requests, the first one first; of those made until a time."""
        begin, end = _children(self._requests)
        return begin, end if ms is None else self._requests + pack(ms + 1)

    def request_of(self, key: bytes) -> tuple[int, bytes]:
        """Return (milliseconds, request) of a request's key."""
        ms, request = _unpack(key, len(self._requests))
        return ms, request

    def result(self, ms: int, request: bytes, n: int) -> bytes:
        """Return the key of a part of what a request got."""
        return self._results + pack(ms, request, n)

    def result_parts(self, ms: int, request: bytes) -> Range:
        """Return the range of all parts of what a request got."""
        return _children(self._results + pack(ms, request))

    def results(self, ms: int | None = None) -> Range:
        """Return the range of what requests got, the first one first; of those made until a time."""
        begin, end = _children(self._results)
        return begin, end if ms is None else self._results + pack(ms + 1)

    def result_of(self, key: bytes) -> tuple[int, bytes]:
        """Return (milliseconds, request) of a result's key."""
        ms, request, _ = _unpack(key, len(self._results))
        return ms, request

    def dead_item(self, suffix: bytes) -> bytes:
        """Return the key of a dead item, or of the place that a cursor names."""
        return self._dead + suffix

    def dead(self) -> Range:
        """Return the range of dead items, the first to die first."""
        return _children(self._dead)

    def dead_suffix_of(self, key: bytes) -> bytes:
        """Return the part of a dead item's key that orders dead items."""
        return key[len(self._dead) :]


class GenerationKeys:
    """The keys of one generation of a queue: its ready and delayed items and their totals."""

    __slots__ = ("_bands", "_counters", "_prefix", "_ready", "_sides", "ahead", "ready_range", "tried")

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._ready = prefix + pack("i")
        self.tried = prefix + pack("d")
        #: The mark of tried items and, behind it, delayed items: its first key tells of both.
        self.ahead = self.tried, _children(self.tried)[1]
        self._counters = prefix + pack("n")
        self._bands = prefix + pack("b")
        self._sides: dict[tuple[str | int, Side], bytes] = {}
        self.ready_range = _children(self._ready)

    def counter(self, state: str, side: Side) -> bytes:
        """Return the key of a state's total in or out."""
        return self._side(self._counters, state, side)

    def band(self, band: int, side: Side) -> bytes:
        """Return the key of a band's total in or out."""
        return self._side(self._bands, band, side)

    def _side(self, prefix: bytes, what: str | int, side: Side) -> bytes:
        key = self._sides.get((what, side))
        if key is None:
            key = self._sides[what, side] = prefix + pack(what, side)
        return key

    @property
    def everything(self) -> Range:
        """The range of all keys of the generation."""
        return _children(self._prefix)

    def indexed(self, state: str) -> bytes:
        """Return what the index keys of a state begin with, in generations after the first."""
        return self._prefix + pack("o", state)

    def stored(self, state: str, suffix: bytes) -> bytes:
        """Return the key of what is ready or delayed."""
        return (self._ready if state == "ready" else self._prefix + pack("d")) + suffix

    def counters(self) -> Range:
        """Return the range of the depth totals."""
        return _children(self._counters)

    def counter_of(self, key: bytes) -> tuple[str, Side]:
        """Return (state, side) of a depth total's key."""
        state, side = _unpack(key, len(self._counters))
        return state, side

    def bands(self) -> Range:
        """Return the range of the band totals."""
        return _children(self._bands)

    def band_of(self, key: bytes) -> tuple[int, Side]:
        """Return (band, side) of a band total's key."""
        band, side = _unpack(key, len(self._bands))
        return band, side

    def delayed_range(self) -> Range:
        """Return the range of delayed items, the next due first."""
        return _children(self.tried)

    def due_by(self, ms: int) -> Range:
        """Return the range of delayed items that are due at this time, the next due first."""
        return _children(self.tried)[0], self.delayed(pack(ms + 1))

    def due_ms(self, key: bytes) -> int:
        """Return when the delayed item of this key is due, in milliseconds."""
        due_ms: int = _unpack(key, len(self.tried))[0]
        return due_ms

    def delayed(self, suffix: bytes) -> bytes:
        """Return the key of a delayed item, or of the place that a cursor names."""
        return self.tried + suffix

    def delayed_suffix_of(self, key: bytes) -> bytes:
        """Return the part of a delayed key that is the same in every generation; it orders items."""
        return key[len(self.tried) :]

    def ready(self, suffix: bytes) -> bytes:
        """Return the key of a ready item, or of the place that a cursor names."""
        return self._ready + suffix

    def suffix_of(self, key: bytes) -> bytes:
        """Return the part of a ready key that is the same in every generation; it orders items."""
        return key[len(self._ready) :]

    def from_priority(self, priority: Priority) -> Range:
        """Return the range of ready items of exactly this priority."""
        return _children(self._ready + pack(priority))


class AttachedKeys:
    """The keys of an attached queue's items: the recipe's, under a prefix that others chose."""

    __slots__ = ("_prefix", "range")

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        #: As the recipe reads it: every packed tuple lies in it, and other keys may.
        self.range = _children(prefix)

    def key(self, suffix: bytes) -> bytes:
        """Return the key of an item, or of the place that a cursor names."""
        return self._prefix + suffix

    def suffix_of(self, key: bytes) -> bytes:
        """Return an item's key without the prefix."""
        return key[len(self._prefix) :]

    def holds(self, suffix: bytes) -> bool:
        """Say whether a key with this suffix is among the queue's items."""
        return _FIRST <= suffix < _LAST

    def only(self, suffix: bytes) -> Range:
        """Return the range of exactly one key: ranges, unlike keys, have no length limit of ours."""
        key = self.key(suffix)
        return key, key + _FIRST

    def from_priority(self, priority: Priority) -> Range:
        """Return the range of the items of exactly this priority."""
        return _children(self._prefix + pack(priority))

    def counts(self, priority: Priority | None) -> Range:
        """Return the range of keys whose count (FIFO: index) is a whole number, all of one priority."""
        begin = self._prefix if priority is None else self._prefix + pack(priority)
        return begin + _INT_FIRST, begin + _INT_END


#: The codes of whole numbers in the tuple encoding, from the largest negative ones on; the first code after them.
_INT_FIRST, _INT_END = b"\x0b", b"\x1e"


def packed_prefix(elements: tuple[Any, ...]) -> bytes:
    """Pack a prefix that is given as a tuple; raise `ValueError` for what can not be packed."""
    try:
        return pack(*elements)
    except Exception as error:  # the tuple layer raises whatever it stumbles over
        raise ValueError(str(error)) from error


def ready_suffix(priority: Priority | None, count: int | None, rand: bytes) -> bytes:
    """Return the ordering part of a ready key; a FIFO queue's items have no priority."""
    if count is None:  # as others may write it
        return pack(count, rand) if priority is None else pack(priority, count, rand)
    return packed_suffix(priority, count, pack_bytes(rand))


def packed_suffix(priority: Priority | None, count: int, packed_rand: bytes) -> bytes:
    """Return the ordering part of a ready key for an id that is packed already."""
    if priority is None:
        return pack_number(count) + packed_rand
    return pack_priority(priority) + pack_number(count) + packed_rand


def ready_elements(suffix: bytes, *, fifo: bool) -> tuple[Priority | None, int, Any]:
    """Return (priority, count, rand) of a ready key's ordering part."""
    return unpacked_suffix(suffix, fifo=fifo)[:3]


def unpacked_suffix(suffix: bytes, *, fifo: bool) -> tuple[Priority | None, int, Any, bytes]:
    """Return (priority, count, rand, packed rand) of a ready key's ordering part."""
    common = unpack_item(suffix, fifo=fifo)
    if common is not None:
        return common
    elements = _unpack(suffix, 0)
    if fifo:
        count, rand = elements
        return None, count, rand, pack(rand)
    priority, count, rand = elements
    return priority, count, rand, pack(rand)


def timed_suffix(ms: int, rand: bytes) -> bytes:
    """Return the ordering part of the key of an item that stands by a time."""
    return pack(ms, rand)


def timed_elements(suffix: bytes) -> tuple[int, bytes]:
    """Return (milliseconds, rand) of such a key's ordering part."""
    ms, rand = _unpack(suffix, 0)
    return ms, rand


_PLACE_FORMAT = 1


_place = Struct(">BII").pack


def place(generation: int, suffix: bytes, attempts: int = 0) -> bytes:
    """Return the value of an index key: where the item stands, and how often it was tried."""
    return _place(_PLACE_FORMAT, attempts, generation) + suffix


def read_place(value: bytes) -> tuple[int, bytes, int]:
    """Return (generation, suffix, attempts) of an index value."""
    return int.from_bytes(value[5:9], "big"), value[9:], int.from_bytes(value[1:5], "big")


def total(value: bytes | None) -> int:
    """Return a total as a number; absent is 0."""
    return 0 if value is None else int.from_bytes(value, "little", signed=True)


def total_bytes(number: int) -> bytes | None:
    """Return the bytes that hold a total; 0 stands for absent, as totals only grow."""
    return None if number == 0 else number.to_bytes(8, "little", signed=True)
