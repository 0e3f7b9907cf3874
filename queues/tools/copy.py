"""Copy of a whole store into another one, on the same or another engine.

A copy goes by rounds. A round carries the source over in chunks. Each chunk is one transaction that also writes the
progress, so that a copy that was killed continues there. The first round finds an empty target, later ones write only
what differs. Then both sides are read whole and compared. Equal: the base of every queue is raised, so that new pushes
sort behind what was copied, and the store record, written last, makes the target a store. Not equal: the source
changed meanwhile; the next run begins another round.

Keys outside of the root are those of applications that share the store, and the items of attached queues. An embedded
store is a whole file, so they are copied and compared as well. In a cluster only the root is the store: they are left
there, and copied into one only on demand.

The copy keeps the store's id: it is the same store in another place. Commit slots are not copied: they belong to
commits of the source's clients.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from queues.catalog import store_record
from queues.catalog.store_record import StoreRecord
from queues.errors import BadSetting, CopyUnfinished, SourceChanged, TargetNotEmpty
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from queues.kv.limits import KEYS_END
from queues.kv.port import KeyValue, KeyValueStore, ReadTransaction, Transaction
from queues.model import records
from queues.tools.content import MAX_BYTES, Digest, Walk, based, cost, digest, digest_of, outside, seal, with_base

Phase = Literal["copying", "verifying", "finishing"]
Part = Literal["root", "outside"]
#: A key and its new value; None: the key is cleared.
Change = tuple[bytes, bytes | None]
#: The place behind all keys below a root.
_END = b"\xff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a copy: keys and bytes of this phase, of either side."""

    phase: Phase
    keys: int
    size: int


OnProgress = Callable[[Progress], None]
Hold = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Result of a finished copy."""

    store_id: str
    #: Of both sides.
    digest: Digest
    #: How often the source was carried over, in part or whole.
    rounds: int
    #: Whether an earlier run had begun it.
    resumed: bool
    #: Of the keys outside of the root, of both sides; None: they were not copied.
    outside: Digest | None
    #: Number of keys outside of the root that were not copied; None in a cluster, where they are not counted.
    left: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """Progress record of a copy, in the target."""

    from_url: str
    store_id: str
    format: int
    #: Whether keys outside of the root are copied, as the first run decided.
    with_outside: bool
    round: int = 1
    #: The part that is carried over now, and the key up to which it is done, this one excluded; without the root.
    part: Part = "root"
    at: bytes = b""
    keys: int = 0
    size: int = 0
    #: What both sides were found to hold; None: they have not been compared, or differed.
    verified: Digest | None = None
    outside: Digest | None = None
    #: The source's seal and a stamp of it when it was verified.
    seal: str = ""
    stamp: int = 0

    def encode(self) -> bytes:
        header = asdict(self) | {"at": self.at.hex()}
        return records.encode(header | {"from": header.pop("from_url")})

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> "_Mark":
        digests = {name: header[name] and Digest(**header[name]) for name in ("verified", "outside")}
        header = header | digests | {"at": bytes.fromhex(header["at"])}
        return cls(from_url=header.pop("from"), **header)

    def next_round(self, store_format: int) -> "_Mark":
        """Return the mark with which the next round begins."""
        return _Mark(
            from_url=self.from_url,
            store_id=self.store_id,
            format=store_format,
            round=self.round + 1,
            with_outside=self.with_outside,
        )


def copy_store(
    from_url: str,
    to_url: str,
    *,
    root: tuple[Any, ...] = ("pq",),
    with_outside: bool | None = None,
    on_progress: OnProgress = lambda progress: None,
    hold: Hold = nullcontext,
) -> Copied:
    """Copy a store into an empty place, or continue the same copy.

    `with_outside` says whether keys outside of the root are copied; by default from one embedded store into another,
    or as the copy was begun. `hold` is entered around each transaction, for callers that defer a stop signal. Raises
    `NotAStore`, `OlderFormat` and their kind (the source cannot be copied), `TargetNotEmpty`, `SourceChanged` (run it
    again), `BadSetting` (`with_outside` cannot be so).
    """
    keyspace = Keyspace(root)
    if with_outside and _is_cluster(from_url):
        raise BadSetting(
            "Keys outside of the root are not copied from a cluster: they belong to other programs.", "with_outside"
        )
    with closing(open_kv(from_url, slots=keyspace.slots)) as source:
        record = store_record.require(source, keyspace, from_url)
        store_record.check(record, from_url)
        with closing(open_kv(to_url, slots=keyspace.slots)) as target:
            return _Copy(source, target, keyspace, from_url, to_url, record, on_progress, hold).run(with_outside)


class _Copy:
    """One run."""

    def __init__(
        self,
        source: KeyValueStore,
        target: KeyValueStore,
        keyspace: Keyspace,
        from_url: str,
        to_url: str,
        record: StoreRecord,
        on_progress: OnProgress,
        hold: Hold,
    ) -> None:
        self._source = source
        self._target = target
        self._keyspace = keyspace
        self._from, self._to = from_url, to_url
        self._record = record
        self._on_progress, self._hold = on_progress, hold

    def run(self, with_outside: bool | None) -> Copied:
        """Copy, verify and finish."""
        with self._hold():
            resumed = self._begin(with_outside)
        if self._mark.format != self._record.format:  # the source has another format since
            self._advance(self._mark.next_round(self._record.format))
        if self._mark.verified is None:
            self._carry()
            self._verify()
        self._raise_bases()
        return self._end(resumed=resumed)

    def _begin(self, with_outside: bool | None) -> bool:
        """Set or read the mark; return whether an earlier run had begun."""
        embedded = not _is_cluster(self._from) and not _is_cluster(self._to)
        fresh = _Mark(
            from_url=self._from,
            store_id=self._record.id,
            format=self._record.format,
            with_outside=embedded if with_outside is None else with_outside,
        )

        def begin(tr: Transaction) -> _Mark | None:
            header = store_record.copy_header(tr, self._keyspace)
            self._check_target(tr, begun=header is not None, with_outside=fresh.with_outside)
            if header is None:
                tr.set(self._keyspace.copy_mark, fresh.encode())
                return None
            try:
                mark = _Mark.from_header(header)
            except (TypeError, KeyError) as error:
                raise TargetNotEmpty(
                    "{to} holds an unfinished copy of another release: copy into an empty place. Nothing was changed.",
                    to=self._to,
                ) from error
            if mark.store_id != fresh.store_id:
                raise TargetNotEmpty(
                    "{to} holds an unfinished copy of another store ({source}). Nothing was changed.",
                    to=self._to,
                    source=mark.from_url,
                )
            if with_outside is True and not mark.with_outside:
                raise BadSetting(
                    "{to} holds an unfinished copy without keys outside of the root: go on without them. "
                    "Nothing was changed.",
                    "with_outside",
                    to=self._to,
                )
            if with_outside is False and mark.with_outside:
                raise BadSetting(
                    "{to} holds an unfinished copy with keys outside of the root: go on with them. "
                    "Nothing was changed.",
                    "with_outside",
                    to=self._to,
                )
            return mark

        found = self._target.transact(begin)
        self._mark = found or fresh
        return found is not None

    def _check_target(self, tr: ReadTransaction, *, begun: bool, with_outside: bool) -> None:
        """Raise `TargetNotEmpty` if the target holds anything but a copy that was begun."""
        keyspace = self._keyspace
        if tr.get(keyspace.store).wait() is not None:
            raise TargetNotEmpty(
                "{to} holds a store already: copy into an empty place. Nothing was changed.", to=self._to
            )
        if begun:
            return
        if not store_record.is_empty(tr, keyspace):
            raise TargetNotEmpty("{to} holds something else under this root. Nothing was changed.", to=self._to)
        begin, end = keyspace.range
        outer = tr.get_key(b"\x00", begin), tr.get_key(end, KEYS_END)
        if with_outside and any(key.wait() is not None for key in outer):
            raise TargetNotEmpty(
                "{to} holds keys of another program outside of the root, and those of {source} are to be "
                "copied, too: copy into an empty place, or without them. Nothing was changed.",
                to=self._to,
                source=self._from,
            )

    def _carry(self) -> None:
        """Make the target equal to the source from the mark on."""
        if self._mark.part == "root":
            self._carry_part(self._keyspace.root, lambda kv: Walk(kv, self._keyspace))
            if not self._mark.with_outside:
                return
            self._advance(replace(self._mark, part="outside", at=b""))
        self._carry_part(b"", lambda kv: outside(kv, self._keyspace))

    def _carry_part(self, prefix: bytes, walk: Callable[[KeyValueStore], Walk]) -> None:
        source = walk(self._source)
        target = walk(self._target) if self._mark.round > 1 else None
        at: bytes | None = self._mark.at
        while at is not None:
            chunk = source.chunk(at)
            there = target.chunk(at) if target is not None else None
            end = chunk.end
            if there is not None and there.end is not None:
                end = there.end if end is None else min(end, there.end)
            changes = _differences(chunk.pairs, there.pairs if there is not None else (), end)
            changes, end = _fitting(changes, end)
            carried = [(key, value) for key, value in chunk.pairs if end is None or key < end]
            mark = replace(
                self._mark,
                at=_END if end is None else end,
                keys=self._mark.keys + len(carried),
                size=self._mark.size + sum(len(key) + len(value) for key, value in carried),
            )
            self._advance(mark, changes, prefix)
            self._on_chunk("copying")(mark.keys, mark.size)
            at = end

    def _verify(self) -> None:
        """Compare both sides; raise `SourceChanged`, having begun another round, unless they are equal."""
        before = seal(self._source, self._keyspace)
        here = digest(self._source, self._keyspace, on_chunk=self._on_chunk("verifying"))
        after = seal(self._source, self._keyspace)
        there = digest(self._target, self._keyspace, on_chunk=self._on_chunk("verifying"))
        around = self._digest_outside(self._source, "verifying") if self._mark.with_outside else None
        if around is not None and around != self._digest_outside(self._target, "verifying"):
            self._give_up_round()
        if before != after or here != there:
            self._give_up_round()
        # Later than everything copied: a base raised by it sorts new pushes into the copy behind that.
        stamp = self._source.transact(lambda tr: tr.stamp())
        mark = replace(self._mark, at=b"", keys=here.keys, size=here.size, seal=after, stamp=stamp)
        self._advance(replace(mark, verified=here, outside=around))

    def _digest_outside(self, kv: KeyValueStore, phase: Phase) -> Digest:
        return digest_of(outside(kv, self._keyspace), on_chunk=self._on_chunk(phase))

    def _raise_bases(self) -> None:
        """Raise the base of every queue, deleted ones included."""
        walk = Walk(self._target, self._keyspace, based(self._keyspace))
        stamp = self._mark.stamp
        at: bytes | None = self._mark.at
        while at is not None:
            chunk = walk.chunk(at)
            raised = [(key, with_base(value, lambda base: base + stamp)) for key, value in chunk.pairs]
            before = dict(chunk.pairs)
            changes: list[Change] = [(key, value) for key, value in raised if value != before[key]]
            changes, end = _fitting(changes, chunk.end)
            self._advance(replace(self._mark, at=_END if end is None else end), changes)
            self._on_chunk("finishing")(self._mark.keys, self._mark.size)
            at = end

    def _end(self, *, resumed: bool) -> Copied:
        """Make the target a store, if the source is still as it was verified."""
        mark, keyspace = self._mark, self._keyspace
        assert mark.verified is not None
        around = None if _is_cluster(self._from) else self._digest_outside(self._source, "finishing")
        # No seal covers keys outside of the root: they are compared again.
        if seal(self._source, keyspace) != mark.seal or (mark.with_outside and around != mark.outside):
            self._give_up_round()

        def write(tr: Transaction) -> None:
            self._check_mark(tr)
            tr.set(keyspace.store, self._record.encode())
            tr.clear(keyspace.copy_mark)

        with self._hold():
            self._target.transact(write)
        return Copied(
            store_id=mark.store_id,
            digest=mark.verified,
            rounds=mark.round,
            resumed=resumed,
            outside=mark.outside,
            left=0 if mark.with_outside else None if around is None else around.keys,
        )

    def _give_up_round(self) -> None:
        self._advance(self._mark.next_round(self._record.format))
        raise SourceChanged(
            "{source} was changed while it was copied, so {to} is not complete and cannot be used "
            "yet. Pause whatever writes to it and run the same command again: it carries over only "
            "what differs.",
            source=self._from,
            to=self._to,
        )

    def _advance(self, mark: _Mark, changes: Sequence[Change] = (), prefix: bytes | None = None) -> None:
        """Write changes and the new mark in one transaction."""
        root, key, record = self._keyspace.root if prefix is None else prefix, self._keyspace.copy_mark, mark.encode()

        def write(tr: Transaction) -> None:
            self._check_mark(tr)
            for changed, value in changes:
                if value is None:
                    tr.clear(root + changed)
                else:
                    tr.set(root + changed, value)
            tr.set(key, record)

        with self._hold():
            self._target.transact(write, background=True)
            self._mark = mark

    def _check_mark(self, tr: ReadTransaction) -> None:
        if tr.get(self._keyspace.copy_mark).wait() != self._mark.encode():
            raise CopyUnfinished(
                "Another process is at work on the copy in {to}: this one leaves it alone.", to=self._to
            )

    def _on_chunk(self, phase: Phase) -> Callable[[int, int], None]:
        return lambda keys, size: self._on_progress(Progress(phase=phase, keys=keys, size=size))


def _is_cluster(url: str) -> bool:
    return url.startswith("fdb:")


def _differences(wanted: Sequence[KeyValue], found: Sequence[KeyValue], end: bytes | None) -> list[Change]:
    """Return the changes that make `found` equal to `wanted` below `end`, in order of keys."""
    there = dict(found)
    changes: list[Change] = [
        (key, value) for key, value in wanted if (end is None or key < end) and there.get(key) != value
    ]
    if there:
        kept = {key for key, _ in wanted}
        changes += [(key, None) for key in there if key not in kept and (end is None or key < end)]
        changes.sort(key=lambda change: change[0])
    return changes


def _fitting(changes: list[Change], end: bytes | None) -> tuple[list[Change], bytes | None]:
    """Return the first changes that fit into one transaction together, and where they end."""
    if cost(changes) <= MAX_BYTES:
        return changes, end
    size = 0
    for n, change in enumerate(changes):
        size += cost((change,))
        if n and size > MAX_BYTES:
            return changes[:n], change[0]
    return changes, end
