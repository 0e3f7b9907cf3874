"""Sums over the rows of a scope and over its groups. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from heapq import heapify, heappop, heappush

from pqadmin.display import format as write
from pqadmin.live.board.health import three_digits
from pqadmin.live.board.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """The attached queues in a sum, whose depths are as of their counts."""

    queues: int = 0
    ready: int = 0
    #: When the oldest of these counts began; None when nothing was counted yet.
    counted_at: datetime | None = None
    #: Queues that were not counted yet, so that their items are in no sum.
    uncounted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Queues together: the tiles above the table, or the heading of a group."""

    queues: int
    #: Attached queues included, as far as they were counted.
    ready: int
    delayed: int
    leased: int
    dead: int
    #: None until a rate is known for any queue.
    rate_in: float | None
    rate_out: float | None
    #: When the oldest ready item of all queues was pushed, and where it lies.
    oldest: datetime | None
    oldest_queue: str | None
    #: When something falls due next, in any queue.
    next_due: datetime | None
    next_expiry: datetime | None
    #: How many queues need attention, by reason; a queue counts once for each of its reasons.
    problems: Mapping[str, int]
    #: How many queues need attention.
    problem_count: int
    #: The oldest reading among the queues that were added up; of a group, when it was added up.
    as_of: datetime
    #: Queues that exist and were not read yet.
    unread: int
    attached: Attached


class Adder:
    """A sum of rows with additions and removals at constant cost."""

    __slots__ = ("_attached", "_due", "_expiry", "_known", "_oldest", "_problems", "_rate_in", "_rate_out", "_rows",
                 "_totals", "_trouble")  # fmt: skip

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: dict[int, Row] = {}
        self._totals = [0, 0, 0, 0]
        #: Rates as whole numbers: floats that are added and taken out leave something behind.
        self._rate_in = self._rate_out = self._known = self._trouble = 0
        self._problems: dict[str, int] = {}
        self._attached: dict[int, Row] = {}
        #: Heaps of moments; rows that left the sum may still have some.
        self._oldest: list[_Moment] = []
        self._due: list[_Moment] = []
        self._expiry: list[_Moment] = []
        for row in rows:
            self.add(row)

    def __len__(self) -> int:
        """Return the number of rows in the sum."""
        return len(self._rows)

    def add(self, row: Row) -> None:
        """Take a row in; its queue has none in the sum."""
        status = row.status
        self._rows[status.id] = row
        self._count(row, 1)
        for heap, moment in (
            (self._oldest, status.oldest),
            (self._due, status.next_due),
            (self._expiry, status.next_expiry),
        ):
            if moment is not None:
                heappush(heap, (moment, status.name, status.id))
                if len(heap) > 2 * len(self._rows) + _IDLE:
                    self._clean(heap)

    def take_out(self, row: Row) -> None:
        """Take out the row that was added for its queue."""
        del self._rows[row.status.id]
        self._count(row, -1)

    def summary(self, *, queues: int, as_of: datetime) -> Summary:
        """Return the sum; `queues` is how many there are, read or not, `as_of` the oldest reading."""
        oldest, due, expiry = self._first(self._oldest), self._first(self._due), self._first(self._expiry)
        ready, delayed, leased, dead = self._totals
        return Summary(
            queues=queues,
            ready=ready,
            delayed=delayed,
            leased=leased,
            dead=dead,
            rate_in=three_digits(self._rate_in / _RATE) if self._known else None,
            rate_out=three_digits(self._rate_out / _RATE) if self._known else None,
            oldest=None if oldest is None else oldest[0],
            oldest_queue=None if oldest is None else oldest[1],
            next_due=None if due is None else due[0],
            next_expiry=None if expiry is None else expiry[0],
            problems={problem: count for problem, count in self._problems.items() if count},
            problem_count=self._trouble,
            as_of=as_of,
            unread=max(0, queues - len(self._rows)),
            attached=attached_of(self._attached.values()),
        )

    def _count(self, row: Row, sign: int) -> None:
        status, totals, sums = row.status, row.status.totals, self._totals
        sums[0] += sign * (row.ready or 0)
        sums[1] += sign * totals.delayed
        sums[2] += sign * totals.leased
        sums[3] += sign * totals.dead
        if row.rate_in is not None:
            self._known += sign
            self._rate_in += sign * round(row.rate_in * _RATE)
            self._rate_out += sign * round((row.rate_out or 0.0) * _RATE)
        if row.problem:
            self._trouble += sign
            for problem in row.problems:
                self._problems[problem.value] = self._problems.get(problem.value, 0) + sign
        if status.attached:
            if sign > 0:
                self._attached[status.id] = row
            else:
                del self._attached[status.id]

    def _first(self, heap: "list[_Moment]") -> "_Moment | None":
        while heap and not self._holds(heap, heap[0]):
            heappop(heap)
        return heap[0] if heap else None

    def _holds(self, heap: "list[_Moment]", one: "_Moment") -> bool:
        row = self._rows.get(one[2])
        if row is None:
            return False
        status = row.status
        now = status.oldest if heap is self._oldest else status.next_due if heap is self._due else status.next_expiry
        return now == one[0] and status.name == one[1]

    def _clean(self, heap: "list[_Moment]") -> None:
        heap[:] = {one for one in heap if self._holds(heap, one)}
        heapify(heap)


#: A moment, and the name and id of the queue that it belongs to.
_Moment = tuple[datetime, str, int]
#: Outdated moments that a heap may hold.
_IDLE = 64
#: Factor of rates in a sum, which makes three digits of any shown rate whole.
_RATE = 1_000_000_000


def total_of(rows: Iterable[Row], *, queues: int, as_of: datetime) -> Summary:
    """Add up rows; `queues` is how many there are, read or not, `as_of` the oldest reading."""
    return Adder(rows).summary(queues=queues, as_of=as_of)


def groups_of(rows: Sequence[Row], *, now: datetime) -> dict[str, Summary]:
    """Add up each group of rows, by its label."""
    members: dict[str, list[Row]] = {}
    for row in rows:
        members.setdefault(label_of(row.status.name), []).append(row)
    return {label: total_of(them, queues=len(them), as_of=now) for label, them in members.items()}


@lru_cache(maxsize=32_768)
def label_of(name: str) -> str:
    """Return the group that a queue belongs to: its name, as shown, up to the last colon that leaves something."""
    return write.split_name(name)[0]


def attached_of(rows: Iterable[Row]) -> Attached:
    """Add up the attached queues among rows."""
    among = [row.status for row in rows if row.status.attached]
    counted = [status for status in among if status.counted_at is not None]
    return Attached(
        queues=len(among),
        ready=sum(status.totals.ready for status in counted),
        counted_at=min((status.counted_at for status in counted if status.counted_at is not None), default=None),
        uncounted=len(among) - len(counted),
    )
