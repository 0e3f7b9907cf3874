"""What clients did to queues, and what must be true of it.

A history is linearizable when every operation can be given one moment between its call and its answer such that,
in the order of these moments, a plain sorted list gives the same answers (Herlihy and Wing; the search is Wing's and
Gong's, with Lowe's memory of what was tried). An operation of unknown outcome may have had its moment at any time
after its call, or never.

Two things keep the search short. An item of which no caller ever saw a trace, pushed by an operation of unknown
outcome, may be left out of an order together with its place among what a take of unknown outcome took, and the order
is as valid as before. And a take of unknown outcome can only have taken items that are missing, neither taken by
anything else nor there at the end, or such unseen ones.
"""

import math
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from queues import Item

#: Where an item is in its queue's order: (priority, count, id).
Key = tuple[object, int, str]


class Violation(AssertionError):
    """A history that no queue may have."""


@dataclass(slots=True, kw_only=True)
class Take:
    """At most `n` items taken from one end; `values` is None when the outcome is unknown."""

    queue: str
    end: str
    n: int = 1
    values: tuple[bytes, ...] | None = None


@dataclass(slots=True, kw_only=True)
class Put:
    """An item pushed; its value is its name, unlike any other's."""

    queue: str
    value: bytes


@dataclass(slots=True, kw_only=True)
class Operation:
    """One atomic operation: what it took, then what it put. `ended` is infinite when its outcome is unknown."""

    number: int
    client: int
    verb: str
    begun: int
    ended: float = math.inf
    #: Answered, or of unknown outcome; None: it said that nothing was written.
    done: bool | None = False
    #: How it ended, in a word.
    outcome: str = "under way"
    takes: list[Take] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)

    def __str__(self) -> str:
        took = ", ".join(f"{t.queue} {t.end} {t.n}: {t.values}" for t in self.takes)
        put = ", ".join(f"{p.queue}: {p.value!r}" for p in self.puts)
        times = f"{self.begun}..{self.ended}"
        return f"#{self.number} client {self.client} {times} {self.verb} {self.outcome} took [{took}] put [{put}]"


class History:
    """The operations of one schedule, and every item that was seen anywhere."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.seen: dict[bytes, tuple[str, Key]] = {}

    def __str__(self) -> str:
        return "\n".join(map(str, self.operations))

    def add(self, client: int, verb: str, begun: int) -> Operation:
        """Note that an operation was called."""
        operation = Operation(number=len(self.operations), client=client, verb=verb, begun=begun)
        self.operations.append(operation)
        return operation

    def saw(self, queue: str, items: Iterable[Item]) -> tuple[bytes, ...]:
        """Note items that an operation returned, or that are there in the end; return their values."""
        values = []
        for item in items:
            key = (item.priority, item.count, item.id)
            if self.seen.setdefault(item.value, (queue, key)) != (queue, key):
                raise Violation(f"{item.value!r} is at {key} in {queue}, and at {self.seen[item.value]}")
            values.append(item.value)
        return tuple(values)

    def check(self, final: Mapping[str, Iterable[bytes]]) -> None:
        """Raise `Violation` unless everything is there once, in order, and the history linearizable."""
        contents = {queue: tuple(values) for queue, values in final.items()}
        self._infer()
        missing = self._account(contents)
        self._check_order(contents)
        _Search(self, missing, contents).run()

    def expected_pops(self, final: Mapping[str, Iterable[bytes]], queue: str) -> tuple[int, bool]:
        """Return how many items were taken from a queue, and whether more may have been, unseen."""
        there = set(final[queue])
        put = [p.value for o in self.operations if o.done for p in o.puts if p.queue == queue]
        unseen = any(p.queue == queue for o in self.operations if o.done is False for p in o.puts)
        return sum(value not in there for value in put), unseen

    # Inside

    def _infer(self) -> None:
        """An operation of unknown outcome one of whose items was seen has happened, all of it."""
        for operation in self.operations:
            if operation.done is not False:
                continue
            for at, put in enumerate(operation.puts):
                seen = self.seen.get(put.value)
                if seen is None:
                    continue
                operation.done = True
                if operation.takes:
                    operation.puts = [put]
                for other, sibling in enumerate(operation.puts):
                    if sibling.value not in self.seen:
                        # Pushed together: counts and ids of one batch are consecutive.
                        first, count, item_id = seen[1]
                        priority = None if first is None else int(sibling.value.split(b":")[1])
                        shifted = (int(item_id, 16) + other - at).to_bytes(20, "big").hex()
                        self.seen[sibling.value] = (put.queue, (priority, count + other - at, shifted))
                for take in operation.takes:
                    take.values = (_moved_from(put.value),)
                break

    def _account(self, final: dict[str, tuple[bytes, ...]]) -> set[bytes]:
        """Nothing twice, nothing from nowhere; return the items that only an unknown take can have taken."""
        put = {p.value: p.queue for o in self.operations if o.done for p in o.puts}
        refused = {p.value for o in self.operations if o.done is None for p in o.puts}
        gone: dict[bytes, str] = {}
        taken = [(o, t.queue, v) for o in self.operations if o.done for t in o.takes for v in t.values or ()]
        there = [(None, queue, value) for queue, values in final.items() for value in values]
        for operation, queue, value in taken + there:
            where = f"taken by #{operation.number}" if operation is not None else "there in the end"
            if value in gone:
                raise Violation(f"twice: {value!r} is {gone[value]} and {where}")
            if value in refused:
                raise Violation(f"written in spite of the answer that nothing was: {value!r} is {where}")
            if put.get(value) != queue:
                raise Violation(f"from nowhere: {value!r} of {queue} is {where}")
            gone[value] = where
        missing = set(put) - set(gone)
        for queue in final:
            lost = [value for value in missing if put[value] == queue]
            possible = sum(t.n for o in self.operations if o.done is False for t in o.takes if t.queue == queue)
            if len(lost) > possible:
                raise Violation(f"lost: {lost} of {queue}, where unknown outcomes explain {possible}")
        return missing

    def _check_order(self, final: dict[str, tuple[bytes, ...]]) -> None:
        """Equals keep the order of pushes that did not overlap; what is there in the end is sorted."""
        for queue, values in final.items():
            keys = [self.seen[value][1] for value in values]
            if keys != sorted(keys):
                raise Violation(f"{queue} is not sorted: {values}")
        puts = [(o, p, self.seen[p.value][1]) for o in self.operations if o.done for p in o.puts]
        for first, one, key in puts:
            for second, other, later in puts:
                if one.queue == other.queue and first.ended < second.begun and key[0] == later[0] and key > later:
                    raise Violation(f"{one.value!r} was pushed before {other.value!r} and is behind it")


class _Search:
    """Looks for an order of moments that explains a history."""

    def __init__(self, history: History, missing: set[bytes], final: dict[str, tuple[bytes, ...]]) -> None:
        self._history = history
        self._seen = history.seen
        self._missing = missing
        self._operations = sorted(
            (o for o in history.operations if o.done or (o.done is False and o.takes and missing)),
            key=lambda o: (o.ended, o.begun),
        )
        unsure = [put for o in history.operations if o.done is False for put in o.puts]
        #: How many items of each queue may have come and gone unseen.
        self._unseen = Counter(put.queue for put in unsure)
        self._sure = [bool(o.done) for o in self._operations]
        self._all_sure = sum(1 << at for at, sure in enumerate(self._sure) if sure)
        self._final = {queue: [(self._seen[v][1], v) for v in values] for queue, values in final.items()}
        self._tried: set[object] = set()
        self._furthest = 0
        self._stuck: list[Operation] = []

    def run(self) -> None:
        if not self._place(0, {queue: [] for queue in self._final}):
            stuck = "\n".join(map(str, self._stuck))
            raise Violation(f"not linearizable; the search got stuck before any of\n{stuck}")

    def _place(self, placed: int, state: dict[str, list[tuple[Key, bytes]]]) -> bool:
        """Tell whether what is not yet placed can follow `state`."""
        if placed & self._all_sure == self._all_sure and state == self._final:
            return True
        known = (placed, tuple(tuple(value for _, value in items) for items in state.values()))
        if known in self._tried:
            return False
        self._tried.add(known)
        left = [at for at in range(len(self._operations)) if not placed >> at & 1]
        deadline = min((self._operations[at].ended for at in left if self._sure[at]), default=math.inf)
        candidates = [at for at in left if self._operations[at].begun < deadline]
        if placed.bit_count() >= self._furthest:
            self._furthest = placed.bit_count()
            self._stuck = [self._operations[at] for at in candidates if self._sure[at]]
        for at in candidates:
            for after in self._after(self._operations[at], state, sure=self._sure[at]):
                if self._place(placed | 1 << at, after):
                    return True
        return False

    def _after(
        self, operation: Operation, state: dict[str, list[tuple[Key, bytes]]], *, sure: bool
    ) -> Iterator[dict[str, list[tuple[Key, bytes]]]]:
        """Yield what the queues may be after an operation: nothing when it could not have answered as it did."""
        if not sure:
            (take,) = operation.takes
            for n in range(take.n, max(0, take.n - 1 - self._unseen[take.queue]), -1):
                left, values = _taken(state[take.queue], take.end, n)
                if len(values) == n and self._missing.issuperset(values):
                    yield state | {take.queue: left}
                elif 0 < len(values) < n and self._missing.issuperset(values):
                    yield state | {take.queue: left}
                    return
            return
        after = dict(state)
        for take in operation.takes:
            after[take.queue], values = _taken(after[take.queue], take.end, take.n)
            if values != take.values:
                return
        for put in operation.puts:
            items = list(after[put.queue])
            insort(items, (self._seen[put.value][1], put.value))
            after[put.queue] = items
        yield after


def _taken(items: list[tuple[Key, bytes]], end: str, n: int) -> tuple[list[tuple[Key, bytes]], tuple[bytes, ...]]:
    """Return what is left after a take of at most `n`, and the values taken, the first to leave first."""
    taken = items[:n] if end == "min" else items[::-1][:n]
    left = items[len(taken) :] if end == "min" else items[: len(items) - len(taken)]
    return left, tuple(value for _, value in taken)


def _moved_from(value: bytes) -> bytes:
    """Return the value that a moved item had before: movers add a mark of their own."""
    return value.rpartition(b">")[0]
