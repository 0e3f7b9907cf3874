"""The doctor: examines a whole store against what it should be, and mends what can be mended.

An examination changes nothing. Queues are counted whole, in read transactions of at most a second or two, at batch
priority; one that kept changing while it was counted is told as that and never as damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from queues.background.commit_slots import count_stale, sweep_slots
from queues.background.staging_leftovers import find_unclaimed
from queues.catalog import directory
from queues.errors import display_name
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import OUTSIDE
from queues.kv.port import KeyValueStore, ReadTransaction
from queues.model.config import Config, decode
from queues.model.lookalikes import described, lookalikes
from queues.tools.content import count_space
from queues.tools.content import spaces as all_spaces
from queues.tools.count import QueueCount, count_queue
from queues.tools.orphans import Unknown, clear_rest, find_orphans, mend_orphan
from queues.tools.repair import mend_counters, mend_ids, mend_index, mend_order

Kind = Literal[
    "counter", "band", "index", "drift", "id", "order", "items", "record", "name", "orphan", "slot", "unclaimed"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    kind: Kind
    #: The queue's name, or what it would be called; None: it is about the store as a whole.
    queue: str | None
    says: str
    #: Whether `--repair` has a way to mend it.
    mendable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What an examination of a whole store found."""

    findings: tuple[Finding, ...]
    #: What was not, or not wholly, examined, and why; no sign of damage.
    notes: tuple[str, ...]
    #: What was mended, in sentences.
    mended: tuple[str, ...]
    queues: int
    items: int
    #: Keys of the application by space: counted, and never examined.
    spaces: Mapping[str, int] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Say whether nothing is wrong."""
        return not self.findings


def counted(n: int, one: str, many: str = "") -> str:
    """Write how many there are of something: 1 item, 2 items."""
    return f"{n} {one if n == 1 else many or one + 's'}"


#: Configs of one read.
_STEP = 500
#: How often a queue is counted anew because it changed before it was mended.
_TRIES = 5


class Doctor:
    """Examines one store."""

    def __init__(
        self,
        kv: KeyValueStore,
        keyspace: Keyspace,
        *,
        now_ms: Callable[[], int],
        sweep_unclaimed: Callable[[Config], int],
    ) -> None:
        self._kv = kv
        self._keyspace = keyspace
        self._now_ms = now_ms
        self._sweep_unclaimed = sweep_unclaimed

    def examine(self, *, on_queue: Callable[[str], None] = lambda name: None) -> Examination:
        """Look at everything and change nothing; `on_queue` hears the name of each queue that is counted."""
        return self._run(on_queue, repair=False)

    def repair(self, *, on_queue: Callable[[str], None] = lambda name: None) -> Examination:
        """Mend what can be mended, then tell what was done and what is still wrong."""
        return self._run(on_queue, repair=True)

    def _run(self, on_queue: Callable[[str], None], *, repair: bool) -> Examination:
        findings: list[Finding] = []
        notes: list[str] = []
        mended: list[str] = []
        self._orphans(findings, notes, mended, repair=repair)
        queues = items = 0
        for config in self._configs(findings):
            queues += 1
            if letters := lookalikes(config.name):
                notes.append(f"The name “{display_name(config.name)}” looks like another one: {described(letters)}.")
            if config.attached:
                notes.append(
                    f"{display_name(config.name)} is attached: others write it, so it has no counters to check."
                )
                continue
            on_queue(config.name)
            self._staging(config, findings, notes, mended, repair=repair)
            count, config = self._queue(config, mended) if repair else (self._count(config), config)
            if count is None:
                notes.append(
                    f"{display_name(config.name)} changed while it was counted: look again when it is quieter."
                )
                continue
            items += sum(count.items.values())
            findings += queue_findings(config, count, self._stamp())
        self._slots(findings, mended, repair=repair)
        spaces = {
            name: count_space(self._kv, self._keyspace, name)
            for name in (self._keyspace.space_of(key) for key, _ in all_spaces(self._kv, self._keyspace))
        }
        return Examination(
            findings=tuple(findings),
            notes=tuple(notes),
            mended=tuple(mended),
            queues=queues,
            items=items,
            spaces=spaces,
        )

    def _configs(self, findings: list[Finding]) -> Iterator[Config]:
        begin, end = self._keyspace.all_configs
        while True:
            pairs = self._kv.read(lambda tr, begin=begin: tr.get_range(begin, end, limit=_STEP).wait(), background=True)  # type: ignore[misc]
            for key, record in pairs:
                config = decode(record)
                if config is not None:
                    yield config
                else:
                    queue_id = self._keyspace.id_of_config(key)
                    says = f"The record of queue number {queue_id} cannot be read, and is left as it is."
                    findings.append(Finding(kind="record", queue=self._name_of(queue_id), says=says, mendable=False))
            if len(pairs) < _STEP:
                return
            begin = pairs[-1][0] + b"\0"

    def _name_of(self, queue_id: int) -> str | None:
        """Return by which name a queue is found whose record does not say it."""
        names = self._kv.read(lambda tr: directory.names(tr, self._keyspace), background=True)
        return next((name for name, of in names.items() if of == queue_id), None)

    def _orphans(self, findings: list[Finding], notes: list[str], mended: list[str], *, repair: bool) -> None:
        orphans, leftovers = find_orphans(self._kv, self._keyspace)
        for orphan in orphans:
            done = mend_orphan(self._kv, self._keyspace, orphan, now_ms=self._now_ms()) if repair else None
            if done is not None:
                mended.append(done)
        if repair and orphans:
            orphans, leftovers = find_orphans(self._kv, self._keyspace)
        for orphan in orphans:
            kind = "orphan" if isinstance(orphan, Unknown) else "name"
            findings.append(Finding(kind=kind, queue=None, says=orphan.says, mendable=not repair))  # type: ignore[arg-type]
        if leftovers is None:
            says = "A record in the trash cannot be read, so nobody can tell which keys of queues are orphaned."
            findings.append(Finding(kind="record", queue=None, says=says, mendable=False))
        if not leftovers:
            return
        if repair:
            cleared = sum(clear_rest(self._kv, self._keyspace, queue_id) > 0 for queue_id in leftovers)
            mended.append(f"Cleared counters that {counted(cleared, 'detached or lost queue')} had left behind.")
        else:
            left = counted(len(leftovers), "detached or lost queue")
            notes.append(f"Counters of {left} are left behind and count nothing any more; --repair clears them.")

    def _slots(self, findings: list[Finding], mended: list[str], *, repair: bool) -> None:
        if repair:
            swept = sweep_slots(self._kv, self._keyspace, now_ms=self._now_ms())
            if swept:
                mended.append(f"Cleared {counted(swept, 'slot')} that no client of the cluster has used for 24 hours.")
        stale = count_stale(self._kv, self._keyspace, now_ms=self._now_ms())
        if stale:
            says = f"{counted(stale, 'slot')} of the cluster's clients unused for 24 hours: those clients are gone."
            findings.append(Finding(kind="slot", queue=None, says=says))

    def _staging(
        self, config: Config, findings: list[Finding], notes: list[str], mended: list[str], *, repair: bool
    ) -> None:
        name, keys = display_name(config.name), self._keyspace.queue(config.id)
        if repair and (swept := self._sweep_unclaimed(config)):
            items = counted(swept, "item")
            mended.append(f"{name}: {items} popped for processes that died can be put back from the trash now.")

        def look(tr: ReadTransaction) -> tuple[bool, int]:
            old, results = find_unclaimed(tr, keys, self._now_ms())
            staging = tr.get(keys.staging).wait()
            return staging is not None and keys.staging not in old, len(old) + len(results)

        staging, left = self._kv.read(look)
        if staging:
            notes.append(f"{name} is staging: one process takes from it for all that keep conflicting.")
        if left:
            pops = counted(left, "pop")
            says = f"{pops} asked for by processes that died: --repair takes what they got into the trash."
            findings.append(Finding(kind="unclaimed", queue=config.name, says=says))

    def _count(self, config: Config) -> QueueCount | None:
        return count_queue(self._kv, self._keyspace, config)

    def _stamp(self) -> int:
        """Return a push-order number of now; writes nothing."""
        return self._kv.transact(lambda tr: tr.stamp(), background=True)

    def _queue(self, config: Config, mended: list[str]) -> tuple[QueueCount | None, Config]:
        """Mend a queue; return the last count of it and its config by now."""
        name = display_name(config.name)
        count = self._count(config)
        if count is None:
            return None, config
        if count.doubles:
            given = mend_ids(self._kv, self._keyspace, config, list(count.doubles))
            mended.append(f"{name}: {counted(given, 'item')} with the id of another item got an id of its own.")
            count = self._count(config)
            if count is None:
                return None, config
        if count.unindexed["ready"] or count.stray:
            written, cleared = mend_index(self._kv, self._keyspace, config)
            if written or cleared:
                found, lost = counted(written, "item"), counted(cleared, "entry", "entries")
                mended.append(f"{name}: the index shows {found} that it had lost; {lost} that showed no item cleared.")
            count = self._count(config)
        for _ in range(_TRIES):
            if count is None:
                return None, config
            wrong = [finding for finding in queue_findings(config, count, self._stamp()) if finding.mendable]
            if not any(finding.kind in ("counter", "band", "drift") for finding in wrong):
                break
            if mend_counters(self._kv, self._keyspace, config, count):
                mended += [f"{name}: {done}" for done in _counters_mended(config, count)]
            count = self._count(config)
        if count is not None and mend_order(self._kv, self._keyspace, config, count.max_count):
            mended.append(f"{name}: pushes are numbered behind the items that are there again.")
            config = self._current(config)
            count = self._count(config)
        return count, config

    def _current(self, config: Config) -> Config:
        return decode(self._kv.read(lambda tr: tr.get(self._keyspace.config(config.id)).wait())) or config


def queue_findings(config: Config, count: QueueCount, stamp: int) -> list[Finding]:
    """Return what is wrong with a queue, by its count and a push-order number taken after it."""
    name = config.name
    found: list[Finding] = []
    for generation, state in sorted(count.items.keys() | count.told.keys()):
        there, told = count.items[generation, state], count.told[generation, state]
        if there != told:
            says = f"{_are(there, state)}, the counters say {told}."
            found.append(Finding(kind="counter", queue=name, says=says))
    if wrong := _wrong_bands(config, count):
        says = f"The counts of {counted(wrong, 'priority band')} differ from the items that are there."
        found.append(Finding(kind="band", queue=name, says=says))
    if count.doubles:
        says = f"{counted(len(count.doubles), 'item')} with the id of another item here: --repair gives other ids."
        found.append(Finding(kind="id", queue=name, says=says))
    found += _index_findings(name, count)
    if count.strange:
        keys = counted(count.strange, "key")
        says = f"{keys} among the ready items written by neither pqadmin nor FoundationDB's recipe: left alone."
        found.append(Finding(kind="items", queue=name, says=says, mendable=False))
    if count.expiries != count.items[OUTSIDE, "leased"]:
        says = f"{_are(count.items[OUTSIDE, 'leased'], 'leased')}, {counted(count.expiries, 'lease')} would ever end."
        found.append(Finding(kind="index", queue=name, says=says, mendable=False))
    if count.max_count >= config.base + stamp:
        says = "Items are numbered ahead of what is pushed now, which would leave before them among equals."
        found.append(Finding(kind="order", queue=name, says=says))
    if count.drift:
        says = "The drift flag is up: a pop found nothing where counters said otherwise."
        found.append(Finding(kind="drift", queue=name, says=says))
    return found


def _wrong_bands(config: Config, count: QueueCount) -> int:
    if config.fifo:
        return 0
    return sum(count.bands[at] != count.told_bands[at] for at in count.bands.keys() | count.told_bands.keys())


def _counters_mended(config: Config, count: QueueCount) -> Iterator[str]:
    """Tell what was wrong with counters, bands and drift flag by a count, now that they say what was counted."""
    for generation, state in sorted(count.items.keys() | count.told.keys()):
        there, told = count.items[generation, state], count.told[generation, state]
        if there != told:
            yield f"the counters said {told} {state}, {there} are there; now they agree."
    if wrong := _wrong_bands(config, count):
        yield f"the counts of {counted(wrong, 'priority band')} differed from the items; now they agree."
    if count.drift:
        yield "the drift flag is down, as the counters are right."


def _are(n: int, state: str) -> str:
    return f"{counted(n, 'item')} {'is' if n == 1 else 'are'} {state}"


def _index_findings(name: str, count: QueueCount) -> list[Finding]:
    found = []
    for state, number in sorted(count.unindexed.items()):
        if number:
            says = f"{_are(number, state)} but not found by id: the index does not show them where they stand."
            found.append(Finding(kind="index", queue=name, says=says, mendable=state == "ready"))
    if count.stray:
        says = f"{counted(count.stray, 'entry', 'entries')} of the index for items that are not there."
        found.append(Finding(kind="index", queue=name, says=says))
    for state in ("delayed", "leased", "dead"):
        there = sum(n for (_, of), n in count.items.items() if of == state)
        if count.index[state] != there - count.hidden[state] and not count.unindexed[state]:
            says = f"{_are(there, state)}, the index has {count.index[state]}."
            found.append(Finding(kind="index", queue=name, says=says, mendable=False))
    return found
