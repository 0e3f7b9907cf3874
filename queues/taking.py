"""Taking from the ends of a queue: pops and leases, those of many callers in one transaction.

The takes of a batch are served in their order, as if one came after the other; each end is read once for all of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import Any

from queues import delayed, leased, ready
from queues.config import Config, Pause
from queues.cursor import End
from queues.errors import QueuePaused
from queues.handle import Handle, check_number
from queues.item import Item
from queues.kv.port import KeyValue, Refused, Transact, Transaction
from queues.names import display_name
from queues.staging import ROUND, Staging
from queues.takes import BATCH_BYTES, LATE, LATE_MS, LateAnswer, One, Take, TakeAll, Taken, deal, one_each
from queues.tally import Tally

#: Bytes of values that one batch reads, as far as they can be guessed from the batch before.
_READ_BYTES = 2_000_000
#: Items taken last whose sizes are looked at, for the guess.
_SAMPLE = 32
Request = Take | One
#: None: nothing for a pop of one, late for any other take.
Answer = Taken | Item | LateAnswer | Refused
#: Of a take, and of a pair.
_number, _now_ms, _value = itemgetter(0), itemgetter(2), itemgetter(1)
#: What a take promotes and expires at most: which delayed items, of a window, is left to chance.
_WINDOW, _FEW = 100, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """Some of what should have been done long ago is to be done."""

    now_ms: int
    late_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What stands at the ends of a queue."""

    config: Config
    #: The first to leave first.
    ends: Mapping[End, list[KeyValue]]
    #: How often items were tried, by key; those that were not are left out.
    attempts: Mapping[bytes, int]
    #: Something was due.
    late: bool


class Taking(Handle):
    """What takes from the ends."""

    _own_takes: Takes | None = None

    def _take(self, n: int, end: End, tr: Transaction | None) -> list[Item]:
        check_number(n)
        if tr is not None:
            return self._take_in(tr, n=n, end=end, serializable=True, now_ms=self._backing.now_ms())
        if self.attached:
            taken: Any = self._backing.kv.serve(self._takes, Take(n=n, end=end, now_ms=self._backing.now_ms()))
        else:
            taken = self._punctually(self._now_taking(end, n))
        items: list[Item] = taken
        return items

    def _take_one(self, end: End) -> Item | None:
        """Take one item, as `_take` does; written out, because it is what most pops are."""
        if self._guess[1].attached:
            items = self._take(1, end, None)
            return items[0] if items else None
        item: Any = self._backing.kv.serve(self._own_takes or self._takes, end)
        if item is LATE:
            items = self._after_late(self._now_taking(end))
            return items[0] if items else None
        return item  # type: ignore[no-any-return]

    def _now_taking(self, end: End, n: int = 1) -> Take:
        """Return the request to pop so many items now, that tells if something is late."""
        now_ms = self._backing.now_ms()
        return Take(n, end, now_ms, now_ms - LATE_MS)

    def _take_in(self, tr: Transaction, *, n: int, end: End, serializable: bool, now_ms: int) -> list[Item]:
        (items,) = self._serve_takes(tr, [Take(n=n, end=end, now_ms=now_ms)], serializable=serializable)
        return items  # type: ignore[return-value]

    def _punctually(self, take: Take) -> Any:
        """Take together with others; before it, do some of what should have been done long ago.

        Only some: whoever else takes now does others, and the sweep all of it.
        """
        taken = self._backing.kv.serve(self._takes, take)
        return self._after_late(take) if taken is None else taken

    def _after_late(self, take: Take) -> Any:
        """Do some of what is late, then take."""
        assert take.late_ms is not None
        self._backing.kv.serve(self._catching_up, Late(now_ms=take.now_ms, late_ms=take.late_ms))
        taken = self._backing.kv.serve(self._takes, take._replace(late_ms=None))
        assert taken is not None
        return taken

    @property
    def _takes(self) -> Takes:
        takes = self._own_takes
        if takes is None:
            takes = self._own_takes = self._backing.servers.of((self.id, "take"), self._make_takes)
        return takes

    def _make_takes(self) -> Takes:
        takes = Takes(self._serve_takes, self._pop_each, self._now_taking)
        if not self.attached:
            # Others' programs keep to no protocol of ours, so nobody takes for them.
            backing = self._backing
            takes.staging = Staging(
                self._keys,
                takes.take,
                config=lambda: self.config,
                aside=backing.aside,
                now_ms=backing.now_ms,
                keep=lambda: backing.kv.serve(takes, ROUND),
                transact=backing.kv.transact,
            )
        return takes

    @property
    def _catching_up(self) -> CatchingUp:
        return self._backing.servers.of((self.id, "late"), lambda: CatchingUp(self._catch_up))

    def _serve_takes(self, tr: Transaction, takes: Sequence[Take], *, serializable: bool) -> Sequence[Taken]:
        """Take for each in turn, and return what each gets; the last ones get no answer when there is no room."""
        front = self._front_of(tr, takes, serializable=serializable)
        if not front.late and (end := one_each(takes)) is not None:
            pairs = front.ends[end]
            if pairs and sum(map(len, map(_value, pairs))) <= BATCH_BYTES:
                popped = self._pop_pairs(tr, front, pairs, max(map(_now_ms, takes)))
                return [*map(list, zip(popped, strict=True)), *([] for _ in range(len(takes) - len(popped)))]
        served = [take for take in takes if take.late_ms is None] if front.late else takes
        if served and not any(front.ends.values()):
            ready.note_drift(tr, self._keys, front.config)
        dealt = deal(served, front.ends)
        tally = Tally(self._keys, wake=False)
        items = iter(self._pop(tr, front, served, dealt, tally))
        answers: list[Taken] = []
        hands = iter(dealt)
        for take in takes:
            if front.late and take.late_ms is not None:
                answers.append(None)
                continue
            hand = next(hands, None)
            if hand is None:
                break
            if take.terms is None:
                answers.append(list(islice(items, len(hand))))
            else:
                entries = ready.entries_of(self._keys, front.config, hand, front.attempts)
                leases = leased.begin(tr, self._keys, front.config, entries, take.terms, tally) if hand else []
                answers.append(leases)
        if any(dealt):
            tally.apply(tr)
        return answers

    def _pop_each(self, tr: Transaction, n: int, end: End) -> Sequence[Item | LateAnswer | None]:
        """Pop one item for each of so many, without a loop that the interpreter sees: what most batches are."""
        now_ms = self._backing.now_ms()
        front = self._front(tr, {end: n}, [now_ms], now_ms - LATE_MS, serializable=False)
        if front.late:
            return [LATE] * n
        pairs = front.ends[end]
        if not pairs:
            ready.note_drift(tr, self._keys, front.config)
            return [None] * n
        if sum(map(len, map(_value, pairs))) > BATCH_BYTES:
            sizes = accumulate(map(len, map(_value, pairs)))
            pairs = pairs[: max(1, bisect_right(list(sizes), BATCH_BYTES))]
            n = len(pairs)
        return self._pop_pairs(tr, front, pairs, now_ms) + [None] * (n - len(pairs))

    def _pop_pairs(self, tr: Transaction, front: Front, pairs: list[KeyValue], now_ms: int) -> list[Item]:
        tally = Tally(self._keys, wake=False)
        items = ready.take_pairs(tr, self._keys, front.config, pairs, now_ms, tally, attempts=front.attempts)
        tally.apply(tr)
        return items

    def _pop(
        self, tr: Transaction, front: Front, takes: Sequence[Take], hands: Sequence[list[KeyValue]], tally: Tally
    ) -> Sequence[Item]:
        """Take what pops were dealt, for all of them at once."""
        pops = [hand for take, hand in zip(takes, hands, strict=False) if take.terms is None]
        pairs = pops[0] if len(pops) == 1 else list(chain.from_iterable(pops))
        if not pairs:
            return ()
        now_ms = max(take.now_ms for take in takes)
        return ready.take_pairs(tr, self._keys, front.config, pairs, now_ms, tally, attempts=front.attempts)

    def _front_of(self, tr: Transaction, takes: Sequence[Take], *, serializable: bool) -> Front:
        """Return what stands at the ends, as far as these takes want it."""
        numbers, sides, nows, lates, _ = zip(*takes, strict=True)
        wanted: dict[End, int] = {sides[0]: sum(numbers)}
        if sides.count(sides[0]) != len(sides):
            wanted = {end: sum(take.n for take in takes if take.end == end) for end in dict.fromkeys(sides)}
        late_ms = max(lates if None not in lates else (ms for ms in lates if ms is not None), default=None)
        return self._front(tr, wanted, nows, late_ms, serializable=serializable)

    def _front(
        self,
        tr: Transaction,
        wanted: Mapping[End, int],
        nows: Sequence[int],
        late_ms: int | None,
        *,
        serializable: bool,
    ) -> Front:
        """Return what stands at the ends, as far as it is wanted now; `late` where something was due by `late_ms`."""
        expired = None if late_ms is None else tr.snapshot.get_key(*self._keys.expired_by(late_ms))

        def issue(config: Config) -> tuple[dict[End, ready.Heads], ready.Ahead]:
            source = tr if serializable else tr.snapshot
            heads = {
                end: ready.Heads(source, self._keys, config.generations, end=end, limit=n or 1)
                for end, n in wanted.items()
            }
            return heads, ready.Ahead(tr.snapshot, self._keys, config.generations)

        config, (heads, ahead) = self._with_config(tr, issue)
        if config.pause is not None and any(map(config.pause.holds, nows)):
            raise _paused(config, config.pause)
        tried = ahead.tried()
        late = False
        if late_ms is not None:
            due_ms = ahead.next_due_ms()
            late = (due_ms is not None and due_ms <= late_ms) or (expired is not None and expired.wait() is not None)
        ends = {end: head.pairs() for end, head in heads.items()}
        attempts: dict[bytes, int] = {}
        if tried:
            for pairs in ends.values():
                attempts |= ready.attempts_of(tr.snapshot, self._keys, config, pairs)
        return Front(config=config, ends=ends, attempts=attempts, late=late)

    def _catch_up(self, tr: Transaction, late: Late) -> None:
        """Promote a few delayed items that are late, and end a few leases that have expired."""
        config = self._current(tr)
        delayed.promote_due(tr, self._keys, config, until_ms=late.late_ms, limit=_WINDOW, few=_FEW)
        leased.expire_due(tr, self._keys, config, until_ms=late.now_ms, limit=_FEW, budget=delayed.BUDGET)


class Takes:
    """The server of a queue's takes."""

    contended = True

    def __init__(
        self,
        take: TakeAll,
        pop_each: Callable[[Transaction, int, End], Sequence[Item | LateAnswer | None]],
        now_taking: Callable[[End], Take],
    ) -> None:
        self._take = take
        #: Pops one item for each of so many.
        self._pop_each = pop_each
        self._now_taking = now_taking
        #: How batches are served where other processes take as well.
        self.staging: Staging | None = None
        #: Bytes of an item, guessed from those taken last.
        self._size = 100

    def serve(self, tr: Transaction, requests: Sequence[Request]) -> Sequence[Answer]:
        """Take for as many as fit together."""
        try:
            first = requests[0]
            if type(first) is str:
                n = requests.count(first)
                if n == len(requests):
                    return self.pop_each(tr, n, first)
            return _to_each(requests, self.take(tr, self._with_times(requests), serializable=False))
        except QueuePaused as paused:
            return _refused(requests, paused)

    def conduct(self, transact: Transact, requests: Sequence[Request]) -> Sequence[Answer]:
        """Serve a batch in one transaction, or have it served. It may be tried again: so the time is told before it."""
        takes = self._with_times(requests)
        try:
            if self.staging is None:
                answers: Sequence[Answer] = transact(lambda tr: self.serve(tr, takes))
            else:
                answers = self.staging.conduct(transact, takes)
        except QueuePaused as paused:
            return _refused(requests, paused)
        return _to_each(requests, answers)

    def _with_times(self, requests: Sequence[Request]) -> Sequence[Take]:
        return [self._now_taking(one) if isinstance(one, str) else one for one in requests]

    def stop(self) -> None:
        """Let other processes know that this one takes for nobody any more."""
        if self.staging is not None:
            self.staging.stop()

    def pop_each(self, tr: Transaction, n: int, end: End) -> Sequence[Item | LateAnswer | None]:
        """Pop one item for each of as many as fit together."""
        answers = self._pop_each(tr, max(1, min(n, ready.MAX_ITEMS, _READ_BYTES // self._size)), end)
        self._remember([item for item in answers[:_SAMPLE] if item])
        return answers

    def take(self, tr: Transaction, takes: Sequence[Take], *, serializable: bool) -> Sequence[Taken]:
        """Take for as many as fit together, and remember how large items are."""
        answers = self._take(tr, self._together(takes), serializable=serializable)
        items: Iterator[Any] = chain.from_iterable(taken or () for taken in answers)
        self._remember(list(islice(items, _SAMPLE)))
        return answers

    def _remember(self, items: Sequence[Any]) -> None:
        """Remember how large items are."""
        if items:
            self._size = sum([len(item.value) for item in items]) // len(items) + 1

    def _together(self, takes: Sequence[Take]) -> Sequence[Take]:
        """Return the first takes whose items can be read at once, one at least."""
        room = min(ready.MAX_ITEMS, _READ_BYTES // self._size)
        if sum(map(_number, takes)) <= room:
            return takes
        for at, take in enumerate(takes):
            room -= take.n
            if at and room < 0:
                return takes[:at]
        return takes


class CatchingUp:
    """The server of those whose takes found that something is late: it is done once for all of a batch."""

    contended = True

    def __init__(self, catch_up: Callable[[Transaction, Late], None]) -> None:
        self._catch_up = catch_up

    def serve(self, tr: Transaction, requests: Sequence[Late]) -> Sequence[bool]:
        """Do some of what is late."""
        self._catch_up(tr, max(requests, key=lambda late: late.late_ms))
        return [True for _ in requests]

    def conduct(self, transact: Transact, requests: Sequence[Late]) -> Sequence[bool]:
        """Serve a batch in one transaction."""
        answers: Sequence[bool] = transact(lambda tr: self.serve(tr, requests))
        return answers


def _to_each(requests: Sequence[Request], answers: Sequence[Any]) -> list[Answer]:
    """Return the answers of those who are answered, to a pop of one its item."""
    return [
        _of_one(answer) if type(request) is str else answer for request, answer in zip(requests, answers, strict=False)
    ]


def _of_one(answer: Any) -> Answer:
    if answer is None:
        return LATE
    if isinstance(answer, Refused):
        return answer
    return answer[0] if answer else None


def _refused(requests: Sequence[Request], paused: QueuePaused) -> list[Refused]:
    return [Refused(QueuePaused(*paused.args)) for _ in requests]


def _paused(config: Config, pause: Pause) -> QueuePaused:
    queue = display_name(config.name)
    if pause.by:
        return QueuePaused("{queue} is paused by {by}: {reason}", queue=queue, by=pause.by, reason=pause.reason)
    return QueuePaused("{queue} is paused: {reason}", queue=queue, reason=pause.reason)
