"""Doctor: examines a whole store, and repairs what can be repaired.

An examination changes nothing. Queues are counted whole, in read transactions of at most a second or two, at batch
priority. A queue that keeps changing while it is counted is reported as such, never as damaged.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from queues.background.stale_commit_slots import count_stale, sweep_slots
from queues.background.unclaimed_staging import find_unclaimed
from queues.catalog import directory
from queues.context import StoreContext
from queues.errors import QueueUnreadable, display_name
from queues.items.finished import FINISHED
from queues.keys.queue_keys import OUTSIDE
from queues.kv.port import ReadTransaction
from queues.model.config import Config, decode
from queues.model.lookalikes import described, lookalikes
from queues.model.range_in_steps import in_background, pairs
from queues.model.records import reading
from queues.tools.content import count_spaces
from queues.tools.count import QueueCount, count_queue
from queues.tools.orphans import clear_rest, find_orphans
from queues.tools.repair import repair_counters, repair_ids, repair_index, repair_order

Kind = Literal[
    "counter", "band", "index", "drift", "id", "order", "items", "record", "name", "orphan", "slot", "unclaimed"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    kind: Kind
    #: The queue's name; None: the finding is about the store as a whole.
    queue: str | None
    says: str
    #: Whether `--repair` can repair it.
    mendable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Result of an examination of a whole store."""

    findings: tuple[Finding, ...]
    #: What was not, or not wholly, examined, and why; not a sign of damage.
    notes: tuple[str, ...]
    #: What was repaired, in sentences.
    mended: tuple[str, ...]
    queues: int
    items: int
    #: Keys of the application by space: counted, and never examined.
    spaces: Mapping[str, int] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun: 1 item, 2 items."""
    return f"{n} {one if n == 1 else many or one + 's'}"


#: How often a queue is counted anew because it changed before it was repaired.
_TRIES = 5
OnQueue = Callable[[str], None]


class Doctor:
    """Examines and repairs one store."""

    def __init__(self, context: StoreContext, *, sweep_unclaimed: Callable[[Config], int]) -> None:
        self._context = context
        self._sweep_unclaimed = sweep_unclaimed

    def examine(self, *, on_queue: OnQueue = lambda name: None) -> Examination:
        """Examine everything and change nothing; `on_queue` gets the name of each queue that is counted."""
        return _Run(self._context, None).run(on_queue)

    def repair(self, *, on_queue: OnQueue = lambda name: None) -> Examination:
        """Repair what can be repaired; return what was done and what is still wrong."""
        return _Run(self._context, self._sweep_unclaimed).run(on_queue)


class _Run:
    """One examination, or one repair if it can sweep unclaimed pops."""

    def __init__(self, context: StoreContext, sweep_unclaimed: Callable[[Config], int] | None) -> None:
        self._kv = context.kv
        self._keyspace = context.keyspace
        self._now_ms = context.clock.now_ms
        self._sweep_unclaimed = sweep_unclaimed
        self._repairs = sweep_unclaimed is not None
        self._findings: list[Finding] = []
        self._notes: list[str] = []
        self._mended: list[str] = []

    def run(self, on_queue: OnQueue) -> Examination:
        """Examine, and repair if asked, the whole store."""
        self._orphans()
        queues = items = 0
        for config in self._configs():
            queues += 1
            name = display_name(config.name)
            if letters := lookalikes(config.name):
                self._notes.append(f"The name “{name}” looks like another one: {described(letters)}.")
            if config.attached:
                self._notes.append(f"{name} is attached: other programs write it, so it has no counters to check.")
                continue
            on_queue(config.name)
            try:
                with reading(config.name):
                    items += self._queue(config)
            except QueueUnreadable as error:
                self._found("record", config.name, str(error), mendable=False)
        self._slots()
        return Examination(
            findings=tuple(self._findings),
            notes=tuple(self._notes),
            mended=tuple(self._mended),
            queues=queues,
            items=items,
            spaces=count_spaces(self._kv, self._keyspace),
        )

    def _queue(self, config: Config) -> int:
        """Examine, and repair if asked, one queue, and return how many items it holds."""
        self._staging(config)
        count, config = self._repaired(config) if self._repairs else (self._count(config), config)
        if count is None:
            name = display_name(config.name)
            self._notes.append(f"{name} changed while it was counted: look again when it is quieter.")
            return 0
        self._findings += queue_findings(config, count, self._stamp())
        return sum(n for (_, state), n in count.items.items() if state != FINISHED)

    def _found(self, kind: Kind, queue: str | None, says: str, *, mendable: bool = True) -> None:
        self._findings.append(Finding(kind=kind, queue=queue, says=says, mendable=mendable))

    def _configs(self) -> Iterator[Config]:
        for key, record in pairs(in_background(self._kv), self._keyspace.configs.all):
            config = decode(record)
            if config is not None:
                yield config
                continue
            queue_id = self._keyspace.configs.elements(key)[0]
            says = f"The record of queue number {queue_id} cannot be read, and is left as it is."
            self._found("record", self._name_of(queue_id), says, mendable=False)

    def _name_of(self, queue_id: int) -> str | None:
        """Return the name of a queue without a readable record of its own."""
        names = self._kv.read(lambda tr: directory.names(tr, self._keyspace), background=True)
        return next((name for name, of in names.items() if of == queue_id), None)

    def _orphans(self) -> None:
        orphans, leftovers = find_orphans(self._kv, self._keyspace)
        if self._repairs and orphans:
            self._mended += filter(None, [orphan.repair(self._now_ms()) for orphan in orphans])
            orphans, leftovers = find_orphans(self._kv, self._keyspace)
        for orphan in orphans:
            self._found(orphan.kind, None, orphan.says, mendable=not self._repairs)
        if leftovers is None:
            says = "A record in the trash cannot be read, so it is unknown which keys of queues are orphaned."
            self._found("record", None, says, mendable=False)
        elif leftovers and self._repairs:
            if cleared := sum(clear_rest(self._kv, self._keyspace, queue_id) > 0 for queue_id in leftovers):
                self._mended.append(
                    f"Cleared counters that {counted(cleared, 'detached or lost queue')} had left behind."
                )
        elif leftovers:
            left = counted(len(leftovers), "detached or lost queue")
            self._notes.append(f"Counters of {left} are left behind and count nothing any more; --repair clears them.")

    def _slots(self) -> None:
        if self._repairs and (swept := sweep_slots(self._kv, self._keyspace, now_ms=self._now_ms())):
            slots = counted(swept, "slot")
            self._mended.append(f"Cleared {slots} that no client of the cluster has used for 24 hours.")
        if stale := count_stale(self._kv, self._keyspace, now_ms=self._now_ms()):
            says = f"{counted(stale, 'slot')} of the cluster's clients unused for 24 hours: those clients are gone."
            self._found("slot", None, says)

    def _staging(self, config: Config) -> None:
        name, keys = display_name(config.name), self._keyspace.queue(config.id)
        if self._sweep_unclaimed is not None and (swept := self._sweep_unclaimed(config)):
            items = counted(swept, "item")
            self._mended.append(f"{name}: {items} popped for processes that died can be put back from the trash now.")

        def look(tr: ReadTransaction) -> tuple[bool, int]:
            old, results = find_unclaimed(tr, keys, self._now_ms())
            staging = tr.get(keys.staging).wait()
            return staging is not None and keys.staging not in old, len(old) + len(results)

        staging, left = self._kv.read(look)
        if staging:
            self._notes.append(f"{name} is staging: one process takes from it for all that keep conflicting.")
        if left:
            pops = counted(left, "pop")
            says = f"{pops} asked for by processes that died: --repair takes what they got into the trash."
            self._found("unclaimed", config.name, says)

    def _count(self, config: Config) -> QueueCount | None:
        return count_queue(self._kv, self._keyspace, config)

    def _stamp(self) -> int:
        """Return a push-order number of now; writes nothing."""
        return self._kv.transact(lambda tr: tr.stamp(), background=True)

    def _repaired(self, config: Config) -> tuple[QueueCount | None, Config]:
        """Repair a queue; return its last count and its config as it is then."""
        kv, keyspace, name = self._kv, self._keyspace, display_name(config.name)
        count = self._count(config)
        if count is not None and count.doubles:
            given = counted(repair_ids(kv, keyspace, config, list(count.doubles.values())), "item")
            self._mended.append(f"{name}: {given} with the id of another item got an id of its own.")
            count = self._count(config)
        if count is not None and (count.unindexed["ready"] or count.stray):
            written, cleared = repair_index(kv, keyspace, config)
            if written or cleared:
                items, lost = counted(written, "item"), counted(cleared, "entry", "entries")
                self._mended.append(
                    f"{name}: the index shows {items} that it had lost; {lost} that showed no item cleared."
                )
            count = self._count(config)
        for _ in range(_TRIES):
            if count is None:
                return None, config
            kinds = {finding.kind for finding in queue_findings(config, count, self._stamp()) if finding.mendable}
            if not kinds & {"counter", "band", "drift"}:
                break
            if repair_counters(kv, keyspace, config, count):
                self._mended += [f"{name}: {done}" for done in _counters_repaired(config, count)]
            count = self._count(config)
        if count is not None and repair_order(kv, keyspace, config, count.max_count):
            self._mended.append(f"{name}: pushes are numbered behind the items that are there again.")
            config = decode(kv.read(lambda tr: tr.get(keyspace.configs.key(config.id)).wait())) or config
            count = self._count(config)
        return count, config


def queue_findings(config: Config, count: QueueCount, stamp: int) -> list[Finding]:
    """Return the findings of a queue by its count and a later push-order number."""
    findings: list[Finding] = []

    def found(kind: Kind, says: str, *, mendable: bool = True) -> None:
        findings.append(Finding(kind=kind, queue=config.name, says=says, mendable=mendable))

    for state, there, told in _wrong_counters(count):
        found("counter", f"{_are(there, state)}, the counters say {told}.")
    if wrong := _wrong_bands(config, count):
        found("band", f"The counts of {counted(wrong, 'priority band')} differ from the items that are there.")
    if count.doubles:
        items = counted(len(count.doubles), "item")
        found("id", f"{items} with the id of another item here: --repair gives other ids.")
    for state, number in sorted(count.unreadable.items()):
        if number:
            says = f"{_are(number, state)} with a record that cannot be read: left alone, and passed over by takes."
            found("record", says, mendable=False)
    for state, number in sorted(count.unindexed.items()):
        if number:
            says = f"{_are(number, state)} but not found by id: the index does not show their places."
            found("index", says, mendable=state == "ready")
    if count.stray:
        entries = counted(count.stray, "entry", "entries")
        found("index", f"{entries} of the index for items that are not there, or that cannot be read.")
    for state in ("delayed", "leased", "dead"):
        there = sum(n for (_, of), n in count.items.items() if of == state)
        if count.index[state] != there - count.hidden[state] and not count.unindexed[state]:
            found("index", f"{_are(there, state)}, the index has {count.index[state]}.", mendable=False)
    if count.strange:
        keys = counted(count.strange, "key")
        says = f"{keys} among the ready items written by neither pqadmin nor FoundationDB's recipe: left alone."
        found("items", says, mendable=False)
    leased = count.items[OUTSIDE, "leased"]
    if count.expiries != leased:
        says = f"{_are(leased, 'leased')}, {counted(count.expiries, 'lease')} would ever end."
        found("index", says, mendable=False)
    if count.max_count >= config.base + stamp:
        found("order", "Items are numbered ahead of what is pushed now, which would leave before them among equals.")
    if count.drift:
        found("drift", "The drift flag is up: a pop found nothing where counters said otherwise.")
    return findings


def _wrong_counters(count: QueueCount) -> Iterator[tuple[str, int, int]]:
    """Yield (state, items, items by the counters) where these differ."""
    for at in sorted(count.items.keys() | count.told.keys()):
        if count.items[at] != count.told[at]:
            yield at[1], count.items[at], count.told[at]


def _wrong_bands(config: Config, count: QueueCount) -> int:
    if config.fifo:
        return 0
    return sum(count.bands[at] != count.told_bands[at] for at in count.bands.keys() | count.told_bands.keys())


def _counters_repaired(config: Config, count: QueueCount) -> Iterator[str]:
    """Yield what was wrong with counters, bands and drift flag before they were repaired."""
    for state, there, told in _wrong_counters(count):
        yield f"the counters said {told} {state}, {there} are there; now they agree."
    if wrong := _wrong_bands(config, count):
        yield f"the counts of {counted(wrong, 'priority band')} differed from the items; now they agree."
    if count.drift:
        yield "the drift flag is down, as the counters are right."


def _are(n: int, state: str) -> str:
    return f"{counted(n, 'item')} {'is' if n == 1 else 'are'} {state}"
