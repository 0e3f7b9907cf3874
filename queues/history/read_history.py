"""Reading a queue's history."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from queues.context import StoreContext
from queues.errors import BadSetting
from queues.history.points import RESOLUTIONS, Point, decode
from queues.kv.port import KeyValue, ReadTransaction
from queues.model.records import UNREADABLE
from queues.serving.leadership import UPKEEP, Holding

_BLOCKS = 200
#: The id under which the sums over all queues are kept; no queue has it.
ALL_QUEUES = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Points of one queue in the order of time."""

    #: Only changes: between two points the queue was as at the first of them, unless the second one has a gap.
    points: Sequence[Point]
    #: The state when the stretch begins; None when unknown.
    before: Point | None
    #: When the blocks begin that cannot be read: nothing is known of their time.
    damaged: Sequence[int] = ()


class History:
    """The histories of one store."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context

    def of(
        self, queue_id: int, resolution: str, *, since: int, until: int, tr: ReadTransaction | None = None
    ) -> Stretch:
        """Return a queue's points between two moments in seconds since the epoch, both included.

        `resolution` is s, m or h: points of ten minutes, of two days, of ninety days.
        """
        return self.of_many((queue_id,), resolution, since=since, until=until, tr=tr)[queue_id]

    def of_many(
        self, queue_ids: Sequence[int], resolution: str, *, since: int, until: int, tr: ReadTransaction | None = None
    ) -> dict[int, Stretch]:
        """Return the points of some hundred queues, read together."""
        kind = RESOLUTIONS.get(resolution)
        if kind is None:
            raise BadSetting(
                "Points are apart by {known}, not {resolution}.",
                "resolution",
                known=", ".join(RESOLUTIONS),
                resolution=f"{resolution!r:.20}",
            )
        keyspace, start = self._context.keyspace, kind.start(max(0, since))

        def look(tr: ReadTransaction) -> dict[int, Stretch]:
            reads = {}
            for queue_id in queue_ids:
                first, end = keyspace.history.below(queue_id, resolution)
                begin = keyspace.history.key(queue_id, resolution, start)
                reads[queue_id] = (
                    tr.get_range(first, begin, limit=1, reverse=True),
                    tr.get_range(begin, end, limit=_BLOCKS),
                )
            return {
                queue_id: self._stretch((*earlier.wait(), *later.wait()), since, until)
                for queue_id, (earlier, later) in reads.items()
            }

        return self._context.read(look, tr)

    def at(self, queue_ids: Sequence[int], resolution: str, moment: int) -> dict[int, Point]:
        """Return how some hundred queues were at a moment. Queues of which that is unknown are left out."""
        kind, keyspace = RESOLUTIONS[resolution], self._context.keyspace

        def look(tr: ReadTransaction) -> dict[int, Point]:
            reads = {}
            for queue_id in queue_ids:
                first, _ = keyspace.history.below(queue_id, resolution)
                end = keyspace.history.key(queue_id, resolution, kind.start(moment) + 1)
                reads[queue_id] = tr.get_range(first, end, limit=2, reverse=True)
            found = {}
            for queue_id, read in reads.items():
                before = self._stretch(reversed(read.wait()), moment + 1, moment).before
                if before is not None:
                    found[queue_id] = before
            return found

        return self._context.kv.read(look)

    def is_recorded(self) -> bool:
        """Say whether a process records now: without one, what happened since the last points is unknown."""

        def look(tr: ReadTransaction) -> bool:
            held = Holding.decode(tr.get(self._context.keyspace.elected.key(UPKEEP)).wait())
            return held is not None and held.holder != "" and held.expires_ms >= self._context.clock.now_ms()

        return self._context.kv.read(look)

    def _stretch(self, blocks: Iterable[KeyValue], since: int, until: int) -> Stretch:
        """Return the points of blocks. A point after one that cannot be read has a gap before it."""
        points: list[Point] = []
        damaged: list[int] = []
        lost = False
        for key, block in blocks:
            try:
                found = decode(block)
            except UNREADABLE:
                damaged.append(self._context.keyspace.history.elements(key)[2])
                lost = True
                continue
            if found and lost:
                found[0], lost = replace(found[0], gap=True), False
            points += found
        earlier = [point for point in points if point.at < since]
        return Stretch(
            points=[point for point in points if since <= point.at <= until],
            before=earlier[-1] if earlier and not (damaged and earlier[-1].at < damaged[0] <= since) else None,
            damaged=damaged,
        )

    def size(self, queue_id: int) -> int:
        """Return the bytes that a queue's history takes, keys included; at most 64 KiB."""
        keyspace = self._context.keyspace

        def look(tr: ReadTransaction) -> int:
            reads = [tr.get_range(*keyspace.history.below(queue_id, name), limit=_BLOCKS) for name in RESOLUTIONS]
            return sum(len(key) + len(block) for read in reads for key, block in read.wait())

        return self._context.kv.read(look)
