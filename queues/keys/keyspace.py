"""Keys of a store; the keys of one queue are built in queues/keys/queue_keys.py.

Only the modules of queues/keys build keys or decode them.

Elements are packed by FoundationDB's tuple layer on every engine, under one root, by default ("pq",):

    ("store",)                            = record       format version, store id; checked when a store is opened
    ("clock",)                            = record       anchor of the store's time line: see queues/serving/clock.py
    ("store", "v")                        = total        directory change: ADD 1 whenever a name comes, goes or changes,
                                                         and when targets change
    ("name", name)                        = id           8 bytes
    ("c", id)                             = record       config: see queues/model/config.py; written by operators only
    ("q", id, "w")  ("q", id, "v")        = total        wake key, change key: ADD 1, outside the generation
    ("q", id, gen, "i", priority, count, rand) = value   ready: the recipe's key, the raw value
    ("q", id, gen, "i", count, rand)      = value        ready, FIFO: the Queues recipe's key
    ("q", id, gen, "c", rand)             = place        ready items by id that became ready after their push, with the
                                                         log of their attempts
    ("q", id, gen, "d", due_ms, rand)     = record       delayed
    ("q", id, gen, "n", state, side)      = total        depth(state) = in − out, exact, one ADD per transaction; leased
                                                         and dead items, and records of finished ones, are outside of
                                                         generations: gen is 0
    ("q", id, gen, "b", band, side)       = total        the priority mix; bands come from the config
    ("q", id, "o", state, rand)           = place        by id, and by age: the first ready key is the oldest; an item
                                                         that became ready after its push has the 6 bytes of that time
                                                         before its id, and is found by id under "c"
    ("q", id, gen, "o", state, rand)      = place        the same, for what is ready or delayed in generations after the
                                                         first: a purge takes it along
    ("q", id, "l", rand)                  = record       lease
    ("q", id, "e", expires_ms, rand)      = ""           leases by expiry
    ("q", id, "z", died_ms, rand)         = record       dead
    ("q", id, "T", verb)                  = total        traffic: push, pop, restore …; hand_pop …: by people
    ("q", id, "h", bucket)                = total        waits of taken items, √2-wide buckets of milliseconds
    ("q", id, "f")                        = version      drift flag: a pop found nothing where counters said otherwise
    ("q", id, "s")                        = bytes        health as last recorded: see queues/health/; written by one
                                                         elected process
    ("q", id, "p")                        = record       the consumer that ended last: see queues/consumers/
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
    ("job", "part", job_id, n)            = number       of its n-th chunk: where that begins beside the trash record of
                                                         the job's id
    ("job", "in", job_id, n)              = record       items that it pushes, in parts: see queues/bulk/push_parts.py
    ("job", "run", job_id)                = ""           it has not ended
    ("job", "v")                          = total        job change: ADD 1 whenever a job begins, ends or resumes
    ("due", second, id)                   = ""           something delayed or leased of the queue falls due in that
                                                         second, or did; second 0: the sweeper is to look
    ("due", "w")                          = total        wake key of sweepers: ADD 1 with what falls due soon
    ("history", id, resolution, start)    = block        points of a queue's history: see queues/history/; id 0: of all
    ("finished", id, "t", ms, rand)       = record       what a program acknowledged or popped: queues/items/finished.py
    ("finished", id, "i", rand)           = ms           finds it by id: 8 bytes
    ("targets", "p", pattern)             = record       targets of queues by pattern: queues/health/target_records.py
    ("targets", "d")                      = record       the defaults of targets, as a site's environment has them
    ("elected", role)                     = record       the leader of a role: see queues/serving/leadership.py
    ("slot", client, n)                   = mark         result of a commit, on a cluster: see queues/kv/commit_slots.py
    ("consumer", id, process)             = record       heartbeat of a process that takes from the queue
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

from queues.keys.queue_keys import CHANGE, QueueKeys, Subspace, last_element
from queues.model import ids
from queues.model.tuples import FIRST, LAST, WHOLE_END, WHOLE_FIRST, Range, behind, children, pack

#: Bytes of an actor's name; an audit key then stays below half of a key's limit.
_MAX_ACTOR = 200


def _short(actor: str) -> str:
    """Return an actor's name, or a digest of one that is too long for a key."""
    name = actor.encode("utf-8", "surrogatepass")
    return actor if len(name) <= _MAX_ACTOR and name == actor.encode("utf-8", "ignore") else sha256(name).hexdigest()


def _item_element(item: str) -> bytes | str:
    """Return an item's id as a key element: bytes, or a foreign id as text."""
    return ids.parse(item) or _short(item)


class Keyspace:
    """The keys of one root: a subspace for each kind of key, with the elements of the table above."""

    def __init__(self, root: tuple[Any, ...]) -> None:
        whole = Subspace(pack(*root))
        self.root = whole.prefix
        self.range = whole.all
        self.store = whole.key("store")
        self.clock = whole.key("clock")
        self.directory_change = whole.key("store", "v")
        self.names = whole.sub("name")
        #: Configs by the id of their queue.
        self.configs = whole.sub("c")
        self.queues = whole.sub("q")
        #: Keys of the queues used last.
        self.queue = lru_cache(maxsize=1_024)(self._queue_keys)
        self.trash = whole.sub("trash", "r")
        self.deadlines = whole.sub("trash", "e")
        self.trash_parts = whole.sub("trash", "p")
        self._attached = whole.sub("attached")
        self.audit = whole.sub("audit", "r")
        self.audit_queues = whole.sub("audit", "q")
        self.audit_actors = whole.sub("audit", "a")
        self.audit_items = whole.sub("audit", "i")
        self.copy_mark = whole.key("job", "copy")
        self.merges = whole.sub("job", "merge")
        self.bulk = whole.sub("job", "bulk")
        self.bulk_parts = whole.sub("job", "part")
        self.incoming = whole.sub("job", "in")
        self.running = whole.sub("job", "run")
        self.job_change = whole.key("job", "v")
        self.slots = whole.key("slot")
        self.all_slots = children(self.slots)
        self.spaces = whole.sub("app", "k")
        self.space_changes = whole.sub("app", "v")
        self.answers = whole.sub("idem", "k")
        self.answer_times = whole.sub("idem", "t")
        self.target_patterns = whole.sub("targets", "p")
        self.target_defaults = whole.key("targets", "d")
        self.elected = whole.sub("elected")
        self.history = whole.sub("history")
        #: Heartbeats, by queue and process.
        self.consumers = whole.sub("consumer")
        #: Finished items, by queue.
        self.finished = whole.sub("finished")
        self.due = whole.sub("due")
        self.due_wake = self.due.key("w")
        #: The due index, the earliest second first.
        self.due_index = self.due.at(WHOLE_FIRST), self.due.at(WHOLE_END)

    def _queue_keys(self, queue_id: int) -> QueueKeys:
        """Return the keys of one queue."""
        return QueueKeys(self.queues.key(queue_id), self.due, queue_id)

    def finished_by_time(self, queue_id: int) -> Subspace:
        """Return the keys of a queue's finished items, the first to finish first."""
        return self.finished.sub(queue_id, "t")

    def finished_by_id(self, queue_id: int) -> Subspace:
        """Return the keys by which a queue's finished items are found."""
        return self.finished.sub(queue_id, "i")

    @staticmethod
    def store_at(root: bytes) -> bytes:
        """Return the key of the store record of any store with this root."""
        return root + pack("store")

    @property
    def content(self) -> tuple[Range, ...]:
        """The ranges of a copy: all keys but clock, heartbeats, slots, store record and copy mark."""
        begin, end = self.range
        first_slot, behind_slots = self.all_slots
        first_consumer, behind_consumers = self.consumers.all
        return (
            (begin, self.clock),
            (self.clock + FIRST, first_consumer),
            (behind_consumers, self.copy_mark),
            (self.copy_mark + FIRST, first_slot),
            (behind_slots, self.store),
            (self.store + FIRST, end),
        )

    @staticmethod
    def digest(key: str) -> bytes:
        """Return the digest of an idempotency key: keys of any length and content stay apart."""
        return sha256(key.encode("utf-8", "surrogatepass")).digest()

    def names_from(self, prefix: str, after: str | None) -> Range:
        """Return the range of names that begin with `prefix` and sort behind `after`."""
        begin, end = self.names.all
        if prefix:
            begin = self.names.key(prefix)[:-1]
            # A prefix that ends inside an element: the next byte of any continuation is UTF-8, below 0xff.
            end = begin + LAST
        if after is not None:
            begin = max(begin, self.names.key(after) + FIRST)
        return begin, end

    def change(self, queue_id: int) -> bytes:
        """Return the change key of one queue, without building its other keys."""
        return self.queues.key(queue_id) + CHANGE

    def attached(self, prefix: bytes) -> bytes:
        """Return the key that says which queue has attached this prefix."""
        return self._attached.at(prefix)

    def attached_before(self, prefix: bytes) -> Range:
        """Return the range of attached prefixes up to this one. The last that overlaps it from above is there."""
        return self._attached.at(FIRST), self.attached(prefix) + FIRST

    def attached_within(self, prefix: bytes) -> Range:
        """Return the range of attached prefixes that begin with this one."""
        return self.attached(prefix), behind(self.attached(prefix))

    def prefix_of(self, key: bytes) -> bytes:
        """Return the prefix that a key of `attached` stands for."""
        return self._attached.suffix_of(key)

    def audit_by_actor(self, actor: str, audit_id: bytes) -> bytes:
        """Return the key that lists an audit record under its actor."""
        return self.audit_actors.key(_short(actor), audit_id)

    def audit_by_item(self, item: str, audit_id: bytes) -> bytes:
        """Return the key that lists an audit record under an item."""
        return self.audit_items.key(_item_element(item), audit_id)

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
        within = self.audit
        if item is not None:
            within = self.audit_items.sub(_item_element(item))
        elif queue_id is not None:
            within = self.audit_queues.sub(queue_id)
        elif actor is not None:
            within = self.audit_actors.sub(_short(actor))
        begin, end = within.all
        return begin if since is None else within.key(since), end if before is None else within.key(before)

    def trash_parts_from(self, trash_id: bytes, first: int) -> Range:
        """Return the range of what lies beside a trash record, from a number on."""
        return self.trash_parts.key(trash_id, first), self.trash_parts.below(trash_id)[1]

    @staticmethod
    def behind_audit_list(key: bytes) -> bytes:
        """Return the beginning of the audit index of the next queue, actor or item."""
        return children(key[: -len(pack(last_element(key)))])[1]


def first_id(ms: int) -> bytes:
    """Return a key element before all ids of this time or later."""
    return max(0, ms).to_bytes(ids.TIME, "big")


def packed_prefix(elements: tuple[Any, ...]) -> bytes:
    """Pack a prefix that is given as a tuple. Raise `ValueError` for what cannot be packed."""
    try:
        return pack(*elements)
    except Exception as error:  # the tuple layer raises whatever it stumbles over
        raise ValueError(str(error)) from error
