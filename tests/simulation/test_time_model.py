"""Random histories of delays and leases against a plain model, with a clock that is moved and another a minute ahead.

One client at a time, as in `test_model.py`.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from queues import Item, Queue, Store
from queues.errors import StaleLease
from queues.keys.keyspace import Keyspace
from queues.model.ids import to_ms
from tests.conftest import Clock
from tests.full_count import check_full_count
from tests.simulation.machine import StoreMachine, on_every_engine, run

#: Seconds by which the second store's clock is ahead.
SKEW = 60
#: A take promotes and expires when something is late by this many milliseconds, and at most so many items of each.
LATE_MS, FEW = 250, 8

SECONDS = st.sampled_from([0.001, 0.3, 5.0, 59.0, 60.0, 61.0, 200.0])
DELAYS = st.one_of(st.none(), st.sampled_from([-5.0, 0.0, 0.3, 5.0, 60.0, 200.0]))
PRIORITIES = st.integers(min_value=-2, max_value=2)
ENDS = st.sampled_from(["min", "max"])
PICK = st.integers(min_value=0, max_value=1_000)
SIDE = st.booleans()


@dataclass(frozen=True, kw_only=True)
class Known:
    """An item as the model knows it."""

    id: str
    priority: int | None
    state: str
    attempts: int = 0
    #: Push order.
    order: int = 0
    #: When it is due, when its lease ends, when it died.
    ms: int = 0
    token: str = ""
    #: The token of the lease that expired, if nothing has happened since.
    expired: str = ""


class Ahead(Clock):
    """A clock that is ahead of another."""

    def __init__(self, other: Clock) -> None:
        self._other = other

    def __call__(self) -> float:
        return self._other() + SKEW


class TimeModel(StoreMachine):
    """One queue as a plain dictionary of items, beside the real one, which two stores have open."""

    kind = "priority"

    def begin(self) -> None:
        ahead = Store(self.store.context.kv, url="", keyspace=Keyspace(("pq",)), clock=Ahead(self.clock))
        here = self.store.create_queue("jobs", kind=self.kind)
        self.queues: tuple[Queue, Queue] = (here, ahead.queue("jobs"))
        self.items: dict[str, Known] = {}
        #: Every token that was handed out.
        self.tokens: list[str] = []
        self.order = 0
        self.max_attempts: int | None = 5

    # The model

    def now_ms(self, *, ahead: bool) -> int:
        return int((self.clock() + SKEW * ahead) * 1000)

    def of(self, state: str) -> list[Known]:
        """Return the items of a state in the order in which they are listed."""
        found = [item for item in self.items.values() if item.state == state]
        if state == "ready":
            return sorted(found, key=lambda item: (item.priority or 0, item.order))
        return sorted(found, key=lambda item: (item.ms, item.id))

    def put(self, item: Known, **changes: object) -> None:
        self.items[item.id] = replace(item, **{"expired": "", **changes})

    def become_ready(self, item: Known) -> None:
        self.order += 1
        self.put(item, state="ready", order=self.order, ms=0)

    def give_back(self, item: Known, now_ms: int, *, expired: bool = True) -> None:
        known = item.token if expired else ""
        if self.max_attempts is not None and item.attempts >= self.max_attempts:
            self.put(item, state="dead", ms=now_ms, token="", expired=known)
        else:
            self.put(item, state="ready", ms=0, token="", expired=known)

    def note_late(self, now_ms: int) -> None:
        """A take promoted some of what was late, whichever, and ended the first leases that were over."""
        late = [item for item in self.of("delayed") if item.ms <= now_ms - LATE_MS]
        there = {item.id for item in self.queues[0].delayed(limit=1_000).items}
        promoted = [item for item in late if item.id not in there]
        assert len(promoted) == min(len(late), FEW)
        held = self.of("leased")
        if late or any(item.ms <= now_ms - LATE_MS for item in held):
            for item in [item for item in held if item.ms <= now_ms][:FEW]:
                self.give_back(item, now_ms)
        for item in promoted:
            self.become_ready(item)

    def front(self, n: int, end: str) -> list[Known]:
        ready = self.of("ready")
        return ready[:n] if end == "min" or self.kind == "fifo" else ready[::-1][:n]

    def pick(self, state: str, at: int) -> Known:
        found = self.of(state)
        return found[at % len(found)]

    def count(self, state: str) -> int:
        return len(self.of(state)) if hasattr(self, "items") else 0

    # Verbs

    @rule(entries=st.lists(st.tuples(PRIORITIES, DELAYS), min_size=1, max_size=4), ahead=SIDE)
    def push(self, entries: list[tuple[int, float | None]], ahead: bool) -> None:
        queue = self.queues[ahead]
        delays = [None if seconds is None else timedelta(seconds=seconds) for _, seconds in entries]
        if self.kind == "fifo":
            pushed = [queue.enqueue(b"v", delay=delay) for delay in delays]
        else:
            pushed = queue.push_many(
                [(b"v", priority, delay) for (priority, _), delay in zip(entries, delays, strict=True)]
            )
        for item, (_, seconds) in zip(pushed, entries, strict=True):
            assert item.state == ("delayed" if seconds is not None and seconds > 0 else "ready")
            known = Known(id=item.id, priority=item.priority, state=item.state)
            if item.due_at is None:
                self.become_ready(known)
            else:
                assert to_ms(item.due_at) > self.now_ms(ahead=ahead) - 1_000
                self.put(known, ms=to_ms(item.due_at))

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(n=st.integers(min_value=1, max_value=4), end=ENDS, ahead=SIDE)
    def pop(self, n: int, end: str, ahead: bool) -> None:
        now_ms, queue = self.now_ms(ahead=ahead), self.queues[ahead]
        taken = queue.dequeue_many(n) if self.kind == "fifo" else queue.pop_many(n, end=end)
        self.note_late(now_ms)
        expected = self.front(n, end)
        assert [(item.id, item.attempts) for item in taken] == [(item.id, item.attempts) for item in expected]
        for item in expected:
            del self.items[item.id]

    @rule(n=st.integers(min_value=1, max_value=4), end=ENDS, seconds=SECONDS, ahead=SIDE)
    def lease(self, n: int, end: str, seconds: float, ahead: bool) -> None:
        now_ms = self.now_ms(ahead=ahead)
        leases = self.queues[ahead].lease_many(n, seconds=seconds, end="min" if self.kind == "fifo" else end)
        self.note_late(now_ms)
        expected = self.front(n, end)
        assert [lease.item.id for lease in leases] == [item.id for item in expected]
        for lease, item in zip(leases, expected, strict=True):
            assert lease.item.attempts == item.attempts + 1
            assert to_ms(lease.expires_at) >= now_ms + seconds * 1000
            self.put(item, state="leased", attempts=item.attempts + 1, ms=to_ms(lease.expires_at), token=lease.token)
            self.tokens.append(lease.token)

    @rule(at=PICK, ahead=SIDE)
    @precondition(lambda self: getattr(self, "tokens", None))
    def ack(self, at: int, ahead: bool) -> None:
        token = self.tokens[-1 - at % len(self.tokens)]
        item = self.items.get(token[:40])
        if item is None:
            self.queues[ahead].ack(token)
            with pytest.raises(StaleLease):
                self.queues[ahead].ack(token, must_hold=True)
        elif token in (item.token, item.expired):
            self.queues[ahead].ack(token, must_hold=True)
            del self.items[item.id]
        else:
            with pytest.raises(StaleLease):
                self.queues[ahead].ack(token)

    @rule(picks=st.lists(PICK, min_size=1, max_size=4), ahead=SIDE)
    @precondition(lambda self: getattr(self, "tokens", None))
    def ack_many(self, picks: list[int], ahead: bool) -> None:
        tokens = list(dict.fromkeys(self.tokens[-1 - at % len(self.tokens)] for at in picks))
        current = {token for item in self.items.values() for token in (item.token, item.expired)}
        acked = {token[:40] for token in tokens if token in current}
        stale = [
            token for token in tokens if token not in current and token[:40] in self.items and token[:40] not in acked
        ]
        assert self.queues[ahead].ack_many(tokens) == stale
        for item_id in acked:
            del self.items[item_id]

    @rule(at=PICK, delay=DELAYS, ahead=SIDE)
    @precondition(lambda self: getattr(self, "tokens", None))
    def release(self, at: int, delay: float | None, ahead: bool) -> None:
        token, now_ms = self.tokens[-1 - at % len(self.tokens)], self.now_ms(ahead=ahead)
        item = self.items.get(token[:40])
        span = None if delay is None else timedelta(seconds=delay)
        if item is None or item.token != token:
            with pytest.raises(StaleLease):
                self.queues[ahead].release(token, delay=span)
            return
        released = self.queues[ahead].release(token, delay=span)
        self.give_back(item, now_ms, expired=False)
        if self.items[item.id].state == "ready" and delay is not None and delay > 0:
            self.put(item, state="delayed", ms=to_ms(released.due_at), order=0, token="")
        assert (released.state, released.attempts) == (self.items[item.id].state, item.attempts)

    @rule(at=PICK, seconds=SECONDS, ahead=SIDE)
    @precondition(lambda self: getattr(self, "tokens", None))
    def extend(self, at: int, seconds: float, ahead: bool) -> None:
        token = self.tokens[-1 - at % len(self.tokens)]
        item = self.items.get(token[:40])
        if item is None or item.token != token:
            with pytest.raises(StaleLease):
                self.queues[ahead].extend(token, seconds=seconds)
            return
        self.put(item, ms=to_ms(self.queues[ahead].extend(token, seconds=seconds).expires_at))

    @rule(limit=st.integers(min_value=1, max_value=5), ahead=SIDE)
    def expire(self, limit: int, ahead: bool) -> None:
        now_ms = self.now_ms(ahead=ahead)
        over = [item for item in self.of("leased") if item.ms <= now_ms][:limit]
        assert self.queues[ahead].expire(limit) == len(over)
        for item in over:
            self.give_back(item, now_ms)

    @rule(limit=st.integers(min_value=1, max_value=5), ahead=SIDE)
    def promote(self, limit: int, ahead: bool) -> None:
        due = [item for item in self.of("delayed") if item.ms <= self.now_ms(ahead=ahead)][:limit]
        assert self.queues[ahead].promote(limit) == len(due)
        for item in due:
            self.become_ready(item)

    @rule(at=PICK, delay=DELAYS, ahead=SIDE)
    @precondition(lambda self: self.count("delayed"))
    def reschedule(self, at: int, delay: float | None, ahead: bool) -> None:
        item, queue = self.pick("delayed", at), self.queues[ahead]
        if delay is None:
            moved = queue.promote_now(item.id)
        else:
            moved = queue.reschedule(item.id, delay=timedelta(seconds=delay))
        if moved.due_at is None:
            self.become_ready(item)
        else:
            self.put(item, ms=to_ms(moved.due_at))
        assert (moved.state, moved.attempts) == (self.items[item.id].state, item.attempts)

    @rule(at=PICK, again=SIDE)
    @precondition(lambda self: self.count("dead"))
    def end_death(self, at: int, again: bool) -> None:
        item = self.pick("dead", at)
        if again:
            assert self.queues[0].retry_dead(item.id).attempts == 0
            self.put(item, state="ready", attempts=0, ms=0)
        else:
            assert self.queues[0].delete_dead(item.id).attempts == item.attempts
            del self.items[item.id]

    @rule(max_attempts=st.sampled_from([1, 2, 5, None]))
    def configure(self, max_attempts: int | None) -> None:
        self.queues[1].configure(max_attempts=max_attempts)
        self.max_attempts = max_attempts

    @rule()
    def delete_and_restore(self) -> None:
        self.store.restore(self.store.delete_queue("jobs"))

    # What must agree

    @invariant()
    def agree(self) -> None:
        queue = self.queues[0]
        assert check_full_count(self.store, queue) == len(self.of("ready"))
        pages = {"ready": queue.items, "delayed": queue.delayed, "leased": queue.leased, "dead": queue.dead}
        for state, page in pages.items():
            listed = page(limit=1_000).items
            expected = self.of(state)
            assert [(item.id, item.attempts, item.state) for item in listed] == [
                (item.id, item.attempts, state) for item in expected
            ]
            assert [_ms(item) for item in listed] == [item.ms for item in expected]
            assert queue.depth(state) == len(expected)
            for item in listed[:2]:
                assert queue.find(item.id) == item
        status = queue.status()
        for state, moment in (("delayed", status.next_due), ("leased", status.next_expiry)):
            assert (None if moment is None else to_ms(moment)) == min(
                (item.ms for item in self.of(state)), default=None
            )


def _ms(item: Item) -> int:
    moment = item.due_at or item.expires_at or item.died_at
    return 0 if moment is None else to_ms(moment)


@pytest.mark.parametrize("kind", ["priority", "fifo"])
@on_every_engine
def test_delays_and_leases_are_their_model(engine: str, kind: str) -> None:
    run(TimeModel, engine=engine, kind=kind, examples=12, steps=40)
