"""Taking from the ends of a queue: pops and leases, those of many callers in one transaction.

The takes of a batch are served in their order, as if one came after the other; each end is read once for all of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import Any

from queues.errors import QueuePaused, display_name
from queues.items import delayed, leased, ready
from queues.items.counters import CounterDelta
from queues.kv.port import KeyValue, Transaction
from queues.model.config import Config, Pause
from queues.model.cursor import End
from queues.model.item import Item
from queues.operations.handle import Handle, check_number
from queues.serving.pop_batch import CatchingUp, Late, Takes
from queues.serving.staging import ROUND, Staging
from queues.serving.take_request import BATCH_BYTES, LATE, LATE_MS, LateAnswer, Take, Taken, deal, one_each

#: Of a take, and of a pair.
_now_ms, _value = itemgetter(2), itemgetter(1)
#: What a take promotes and expires at most: which delayed items, of a window, is left to chance.
_WINDOW, _FEW = 100, 8


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
            return self._take_in(tr, n=n, end=end, serializable=True, now_ms=self._context.now_ms())
        if self.attached:
            taken: Any = self._context.kv.serve(self._takes, Take(n=n, end=end, now_ms=self._context.now_ms()))
        else:
            taken = self._punctually(self._now_taking(end, n))
        items: list[Item] = taken
        return items

    def _take_one(self, end: End) -> Item | None:
        """Take one item, as `_take` does; written out, because it is what most pops are."""
        if self._guess[1].attached:
            items = self._take(1, end, None)
            return items[0] if items else None
        item: Any = self._context.kv.serve(self._own_takes or self._takes, end)
        if item is LATE:
            items = self._after_late(self._now_taking(end))
            return items[0] if items else None
        return item  # type: ignore[no-any-return]

    def _now_taking(self, end: End, n: int = 1) -> Take:
        """Return the request to pop so many items now, that tells if something is late."""
        now_ms = self._context.now_ms()
        return Take(n, end, now_ms, now_ms - LATE_MS)

    def _take_in(self, tr: Transaction, *, n: int, end: End, serializable: bool, now_ms: int) -> list[Item]:
        (items,) = self._serve_takes(tr, [Take(n=n, end=end, now_ms=now_ms)], serializable=serializable)
        return items  # type: ignore[return-value]

    def _punctually(self, take: Take) -> Any:
        """Take together with others; before it, do some of what should have been done long ago.

        Only some: whoever else takes now does others, and the sweep all of it.
        """
        taken = self._context.kv.serve(self._takes, take)
        return self._after_late(take) if taken is None else taken

    def _after_late(self, take: Take) -> Any:
        """Do some of what is late, then take."""
        assert take.late_ms is not None
        self._context.kv.serve(self._catching_up, Late(now_ms=take.now_ms, late_ms=take.late_ms))
        taken = self._context.kv.serve(self._takes, take._replace(late_ms=None))
        assert taken is not None
        return taken

    @property
    def _takes(self) -> Takes:
        takes = self._own_takes
        if takes is None:
            takes = self._own_takes = self._context.servers.of((self.id, "take"), self._make_takes)
        return takes

    def _make_takes(self) -> Takes:
        takes = Takes(self._serve_takes, self._pop_each, self._now_taking)
        if not self.attached:
            # Others' programs keep to no protocol of ours, so nobody takes for them.
            context = self._context
            takes.staging = Staging(
                self._keys,
                takes.take,
                config=lambda: self.config,
                background_threads=context.background_threads,
                now_ms=context.now_ms,
                keep=lambda: context.kv.serve(takes, ROUND),
                transact=context.kv.transact,
            )
        return takes

    @property
    def _catching_up(self) -> CatchingUp:
        return self._context.servers.of((self.id, "late"), lambda: CatchingUp(self._catch_up))

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
        delta = CounterDelta(self._keys, wake=False)
        items = iter(self._pop(tr, front, served, dealt, delta))
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
                leases = []
                if hand:
                    leases = leased.begin(tr, self._keys, front.config, entries, take.terms, delta)
                answers.append(leases)
        if any(dealt):
            delta.apply(tr)
        return answers

    def _pop_each(self, tr: Transaction, n: int, end: End) -> Sequence[Item | LateAnswer | None]:
        """Pop one item for each of so many, without a loop that the interpreter sees: what most batches are."""
        now_ms = self._context.now_ms()
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
        delta = CounterDelta(self._keys, wake=False)
        items = ready.take_pairs(tr, self._keys, front.config, pairs, now_ms, delta, attempts=front.attempts)
        delta.apply(tr)
        return items

    def _pop(
        self, tr: Transaction, front: Front, takes: Sequence[Take], hands: Sequence[list[KeyValue]], delta: CounterDelta
    ) -> Sequence[Item]:
        """Take what pops were dealt, for all of them at once."""
        pops = [hand for take, hand in zip(takes, hands, strict=False) if take.terms is None]
        pairs = pops[0] if len(pops) == 1 else list(chain.from_iterable(pops))
        if not pairs:
            return ()
        now_ms = max(take.now_ms for take in takes)
        return ready.take_pairs(tr, self._keys, front.config, pairs, now_ms, delta, attempts=front.attempts)

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


def _paused(config: Config, pause: Pause) -> QueuePaused:
    queue = display_name(config.name)
    if pause.by:
        return QueuePaused("{queue} is paused by {by}: {reason}", queue=queue, by=pause.by, reason=pause.reason)
    return QueuePaused("{queue} is paused: {reason}", queue=queue, reason=pause.reason)
