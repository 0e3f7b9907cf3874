"""Ages and waits count from the moment at which an item became ready: every change of state against a plain model."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from math import ceil
from pathlib import Path

import pytest

from queues import Lease, Queue, Store, Transaction, open_store
from queues.items.counters import wait_bucket
from queues.items.scan import Query
from queues.kv import open_kv
from queues.model.ids import at, to_ms
from queues.status.status import TotalsRead
from tests.conftest import Clock, store_url
from tests.full_count import check_full_count
from tests.sweeps import merge_generations

NAMES = ("jobs", "more")
#: Attempts after which an item is dead.
LAST = 2


@pytest.fixture
def url(engine: str, tmp_path: Path) -> Iterator[str]:
    """A place for a store that several processes open, one after the other and at the same time."""
    if engine != "simulated":
        yield store_url(engine, tmp_path)
        return
    with closing(open_kv(f"memory:{tmp_path.name}")):  # while no process has it open
        yield f"memory:{tmp_path.name}"


class Model:
    """Items by id as (queue, state, since when that is so or until when it will be), beside two processes."""

    def __init__(self, url: str, clock: Clock, seed: int) -> None:
        self.url, self.clock, self.dice = url, clock, random.Random(seed)
        self.there: dict[str, tuple[str, str, int]] = {}
        self.attempts: Counter[str] = Counter()
        self.waits: dict[str, Counter[int]] = {name: Counter() for name in NAMES}
        self.leases: list[tuple[str, Lease]] = []
        self.stores: list[Store] = []
        self.restart()
        for name in NAMES:
            self.stores[0].create_queue(name, bands=[0]).configure(max_attempts=LAST)

    def restart(self) -> None:
        for store in self.stores:
            store.close()
        self.stores = [open_store(self.url, clock=self.clock) for _ in range(2)]

    @property
    def now_ms(self) -> int:
        return int(self.clock() * 1000)

    def queue(self, name: str) -> Queue:
        return self.dice.choice(self.stores).queue(name)

    def ids(self, name: str, state: str, most: int = 3) -> list[str]:
        of = sorted(i for i, (queue, there, _) in self.there.items() if (queue, there) == (name, state))
        return self.dice.sample(of, min(most, len(of)))

    def taken(self, name: str, item_id: str) -> None:
        """Note that an item was taken; what had fallen due or expired became ready then."""
        _, _, since = self.there[item_id]
        self.waits[name][wait_bucket(self.now_ms - since)] += 1

    def come(self, name: str, item_ids: list[str]) -> None:
        for item_id in item_ids:
            self.there[item_id] = (name, "ready", self.now_ms)

    # Programs

    def push(self, name: str) -> None:
        delay = self.dice.choice([None, None, None, timedelta(seconds=self.dice.randint(1, 90))])
        for _ in range(self.dice.randint(1, 3)):
            item = self.queue(name).push(b"v", self.dice.randint(-3, 3), delay=delay)
            assert item.pushed_at is not None
            began = to_ms(item.pushed_at if item.due_at is None else item.due_at)
            self.there[item.id] = (name, item.state, began)

    def pop(self, name: str) -> None:
        for item in self.queue(name).pop_many(self.dice.randint(1, 3), end=self.dice.choice(["min", "max"])):
            self.taken(name, item.id)
            assert to_ms(item.ready_at) == self.there.pop(item.id)[2]

    def lease(self, name: str) -> None:
        for lease in self.queue(name).lease_many(self.dice.randint(1, 3), seconds=self.dice.randint(1, 120)):
            self.taken(name, lease.item.id)
            self.hold(name, lease)

    def hold(self, name: str, lease: Lease) -> None:
        self.attempts[lease.item.id] += 1
        self.there[lease.item.id] = (name, "leased", to_ms(lease.expires_at))
        self.leases.append((name, lease))
        assert lease.item.ready_at is None

    def end_lease(self, name: str) -> None:
        mine = [held for held in self.leases if self.there.get(held[1].item.id, ())[:2] == (held[0], "leased")]
        mine = [held for held in mine if self.there[held[1].item.id][2] == to_ms(held[1].expires_at)]
        if not mine:
            return
        name, lease = self.dice.choice(mine)
        item_id, how = lease.item.id, self.dice.choice(["ack", "ack", "return", "fail", "later"])
        if how == "ack":
            self.queue(name).ack(lease)
            del self.there[item_id]
            return
        delay = timedelta(seconds=30) if how == "later" else None
        item = self.queue(name).release(lease, delay=delay, count_attempt=how != "return")
        self.attempts[item_id] -= how == "return"
        began = {"ready": self.now_ms, "dead": 0}.get(item.state) if item.due_at is None else to_ms(item.due_at)
        assert began is not None
        self.there[item_id] = (name, item.state, began)

    def change_one(self, name: str) -> None:
        queue = self.queue(name)
        for item_id in self.ids(name, "delayed", 1):
            if self.dice.random() < 0.5:
                item = queue.promote_now(item_id)
                self.come(name, [item_id])
            else:
                item = queue.reschedule(item_id, delay=timedelta(seconds=self.dice.randint(0, 60)))
                began = self.now_ms if item.due_at is None else to_ms(item.due_at)
                self.there[item_id] = (name, item.state, began)
            assert item is not None
        for item_id in self.ids(name, "dead", 1):
            assert queue.retry_dead(item_id) is not None
            self.attempts[item_id] = 0
            self.come(name, [item_id])

    def sweep(self, name: str) -> None:
        if self.dice.random() < 0.5:
            self.dice.choice(self.stores).sweep()
        else:
            self.queue(name).promote(limit=2)
            self.queue(name).expire(limit=1)

    def merge(self, name: str) -> None:
        merge_generations(self.dice.choice(self.stores), limit=1)

    # People; half of what they do is undone, some time later

    def act(self, name: str) -> None:
        ann = self.dice.choice(self.stores).actions("ann")
        verb, state = self.dice.choice(
            [
                ("delete_items", self.dice.choice(["ready", "delayed", "leased", "dead"])),
                ("move_items", self.dice.choice(["ready", "delayed", "dead"])),
                ("reprioritize", "ready"),
                ("promote", "delayed"),
                ("reschedule", "delayed"),
                ("delay", "ready"),
                ("retry_dead", "dead"),
                ("release", "leased"),
            ]
        )
        ids = self.ids(name, state)
        if not ids:
            return
        other = NAMES[name == NAMES[0]]
        before, tried = {item_id: self.there[item_id] for item_id in ids}, self.attempts.copy()
        options: dict = {
            "move_items": {"to": other},
            "reprioritize": {"priority": 9},
            "reschedule": {"delay": timedelta(seconds=40)},
            "delay": {"delay": timedelta(seconds=20)},
        }
        trash_id = getattr(ann, verb)(name, ids, **options.get(verb, {})).trash_id
        if verb == "delete_items":
            self.there = {item_id: place for item_id, place in self.there.items() if item_id not in ids}
        elif verb in ("reschedule", "delay"):
            due_ms = ceil((self.clock() + (40 if verb == "reschedule" else 20)) * 1000)
            self.there |= dict.fromkeys(ids, (name, "delayed", due_ms))
        elif verb == "move_items" and state == "delayed":
            self.there |= {item_id: (other, *place[1:]) for item_id, place in before.items()}
        elif verb != "reprioritize":
            self.come(other if verb == "move_items" else name, ids)
            for item_id in ids:
                if verb == "release" and self.attempts[item_id] >= LAST:
                    self.there[item_id] = (name, "dead", 0)
                elif state == "dead":
                    self.attempts[item_id] = 0
        self.check()
        if trash_id is not None and self.dice.random() < 0.5:
            self.clock.advance(self.dice.choice([0, 1, 5]))
            undone = ann.undo(trash_id, partial=True)
            assert undone.skipped == 0
            self.there |= before
            self.attempts = tried

    def pop_by_hand(self, name: str) -> None:
        ann = self.dice.choice(self.stores).actions("ann")
        popped = ann.pop(name)
        if popped is None:
            return
        self.taken(name, popped.item.id)
        gone = self.there.pop(popped.item.id)
        if self.dice.random() < 0.7:
            self.clock.advance(3)
            ann.undo(popped.trash_id)
            self.there[popped.item.id] = (name, "ready", gone[2])

    def purge(self, name: str) -> None:
        ann = self.dice.choice(self.stores).actions("ann")
        merge_generations(self.stores[0])
        gone = {i: place for i, place in self.there.items() if place[0] == name and place[1] in ("ready", "delayed")}
        trash_ids = ann.purge(name, confirm=name).trash_ids
        self.there = {i: place for i, place in self.there.items() if i not in gone}
        self.check()
        if self.dice.random() < 0.5:
            self.clock.advance(3)
            self.push(name)
        for trash_id in trash_ids:
            ann.undo(trash_id)
        self.there |= gone

    def delete_queue(self, name: str) -> None:
        ann = self.dice.choice(self.stores).actions("ann")
        trash_id = ann.delete_queue(name, confirm=name)
        self.clock.advance(3)
        ann.undo(trash_id)

    def step(self) -> None:
        often = [self.push, self.pop, self.lease, self.end_lease, self.change_one, self.sweep, self.merge, self.act]
        seldom = [self.pop_by_hand, self.purge, self.delete_queue]
        self.dice.choice([*often * 3, self.act, self.act, *seldom])(self.dice.choice(NAMES))
        self.clock.advance(self.dice.choice([0.0, 0.001, 0.5, 7.0, 20.0, -2.0]))
        if self.dice.random() < 0.03:
            self.restart()

    def settle(self) -> None:
        """Note what has fallen due or expired, as far as a pop or a sweep has brought it to its place by now."""
        for item_id, (name, state, until) in self.there.items():
            if state in ("delayed", "leased"):
                item = self.queue(name).find(item_id)
                if item is None:
                    continue  # taken in the transaction that brought it to its place
                if item.state == "dead":
                    assert self.attempts[item_id] >= LAST
                    self.there[item_id] = (name, "dead", 0)
                elif item.state == "ready":
                    assert until <= self.now_ms + 2_500
                    self.there[item_id] = (name, "ready", until)

    def check(self) -> None:
        self.settle()
        for name in NAMES:
            queue = self.queue(name)
            ready = {i: since for i, (of, state, since) in self.there.items() if (of, state) == (name, "ready")}
            found = list(queue.items(limit=1_000).items)
            assert {item.id: to_ms(item.ready_at) for item in found} == ready
            oldest, first = queue.status().oldest, queue.oldest()
            assert (oldest and to_ms(oldest)) == min(ready.values(), default=None)
            assert (first and to_ms(first.ready_at)) == min(ready.values(), default=None)
            until = self.dice.choice([*ready.values(), 1])
            for low in (None, -1):
                searched = queue.search(Query(until=at(until), low=low), limit=1_000).items
                assert {item.id for item in searched} == {
                    item.id for item in found if ready[item.id] <= until and (low is None or item.priority >= low)
                }
            for item_id, (_, state, _) in self.there.items():
                item = self.queue(self.there[item_id][0]).find(item_id)
                assert item.state == state
                assert item.attempts == self.attempts[item_id]
                assert (item.ready_at is None) == (state != "ready")

    def check_counts(self) -> None:
        for name in NAMES:
            store = self.stores[1]
            check_full_count(store, store.queue(name))
            keys = store.context.keyspace.queue(store.queue(name).id)
            assert store.read(lambda tr, keys=keys: TotalsRead(tr, keys.waits).wait()) == self.waits[name]
        assert self.stores[0].doctor.examine().healthy


@pytest.mark.parametrize("seed", range(3))
def test_ages_count_from_when_items_became_ready(url: str, clock: Clock, seed: int) -> None:
    model = Model(url, clock, seed)
    for n in range(120):
        model.step()
        model.check()
        if n % 20 == 19:
            model.check_counts()
    for store in model.stores:
        store.close()


def test_one_old_item_is_seen_behind_many_that_became_ready_just_now(jobs: Queue, clock: Clock) -> None:
    items = jobs.push_many([(b"", n % 7, timedelta(hours=1)) for n in range(300)])
    clock.advance(3_000)
    old = jobs.push(b"old", 3)
    clock.advance(600)
    assert jobs.promote(limit=1_000) == 300
    status = jobs.status()
    assert status.oldest == old.pushed_at
    assert jobs.oldest() == old
    assert jobs.remove(old.id) is not None
    assert jobs.status().oldest == items[0].due_at


def test_plain_items_cost_no_key_more(store: Store, jobs: Queue, clock: Clock) -> None:
    """Once the items that became ready later are gone, takers ask for nothing more."""

    def reads_of_a_pop(tr: Transaction) -> int:
        before = tr.reads
        assert jobs.pop_min(tr=tr) is not None
        return tr.reads - before

    jobs.push_many([(b"", 1)] * 3)
    plain = store.transact(reads_of_a_pop)
    jobs.release(jobs.lease(seconds=60))
    clock.advance(5)
    assert store.transact(reads_of_a_pop) > plain
    assert store.transact(reads_of_a_pop) == plain


def test_one_later_item_costs_takers_one_key_for_each_item(store: Store, jobs: Queue) -> None:
    def reads_of_a_pop(tr: Transaction) -> int:
        before = tr.reads
        assert len(jobs.pop_many(100, tr=tr)) == 100
        return tr.reads - before

    jobs.push_many([(b"", 1)] * 200)
    plain = store.transact(reads_of_a_pop)
    last = jobs.push(b"", priority=9)
    jobs.release(jobs.lease(end="max"))
    assert store.transact(reads_of_a_pop) <= plain + 102
    assert [(item.id, item.attempts) for item in jobs.pop_many(9)] == [(last.id, 1)]
