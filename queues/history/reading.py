"""Reading a queue's history."""

from collections.abc import Sequence
from dataclasses import dataclass

from queues.context import StoreContext
from queues.errors import BadSetting
from queues.history.points import RESOLUTIONS, Point, decode
from queues.kv.port import ReadTransaction

_BLOCKS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Points of one queue in the order of time."""

    #: Only changes: between two points the queue was as at the first of them.
    points: Sequence[Point]
    #: The state when the stretch begins; None when unknown.
    before: Point | None


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
            found = {}
            for queue_id, (earlier, later) in reads.items():
                points = [point for _, block in (*earlier.wait(), *later.wait()) for point in decode(block)]
                found[queue_id] = Stretch(
                    points=[point for point in points if since <= point.at <= until],
                    before=max(
                        (point for point in points if point.at < since), key=lambda point: point.at, default=None
                    ),
                )
            return found

        return self._context.read(look, tr)

    def size(self, queue_id: int, *, tr: ReadTransaction | None = None) -> int:
        """Return the bytes that a queue's history takes, keys included; at most 64 KiB."""
        keyspace = self._context.keyspace

        def look(tr: ReadTransaction) -> int:
            reads = [tr.get_range(*keyspace.history.below(queue_id, name), limit=_BLOCKS) for name in RESOLUTIONS]
            return sum(len(key) + len(block) for read in reads for key, block in read.wait())

        return self._context.read(look, tr)
