"""The audit's retention: what is older is forgotten with its index entries, what is younger stays whole."""

from datetime import UTC, datetime, timedelta

import pytest

from queues import Store
from queues.background import audit_retention
from queues.background.sweeper import Sweeper
from queues.errors import BadSetting
from queues.keys.queue_keys import last_element
from tests.conftest import Clock
from tests.dumps import EVERYTHING

DAY = 86_400.0


def moment(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now, UTC)


def audit_keys(store: Store) -> list[bytes]:
    """Return all keys of the audit, index entries included."""
    keyspace = store.context.keyspace
    ranges = (keyspace.audits(), keyspace.audit_queues.all, keyspace.audit_actors.all, keyspace.audit_items.all)
    return store.read(lambda tr: [key for each in ranges for key, _ in tr.get_range(*each, limit=EVERYTHING).wait()])


def act(store: Store, *, items: int = 3) -> None:
    """Do things that are listed under two queues, two people and several items."""
    ann, bob = store.actions("ann"), store.actions("bob")
    if "jobs" not in store.directory():
        ann.create_queue("jobs")
        bob.create_queue("mail")
    ann.push_many("jobs", [(b"x", n) for n in range(items)])
    bob.pop("jobs")
    bob.pause("mail", reason="r")
    ann.resume("mail")


def test_older_acts_are_forgotten_and_younger_ones_are_found_by_every_index(store: Store, clock: Clock) -> None:
    act(store)
    clock.advance(3 * DAY)
    before = set(audit_keys(store))
    act(store)
    young = [entry.id for entry in store.audit.entries(since=moment(clock)).entries]
    swept = store.sweep(audit_days=2)
    assert swept.audit > 0
    left = store.audit.entries(limit=1000).entries
    assert [entry.id for entry in left] == young
    assert set(audit_keys(store)).isdisjoint(before)
    for entry in left:
        assert entry.id in [found.id for found in store.audit.entries(actor=entry.actor).entries]
        assert entry.queue is not None
        assert entry.id in [found.id for found in store.audit.entries(queue=entry.queue).entries]
        if entry.item is not None:
            assert entry.id in [found.id for found in store.audit.entries(item=entry.item).entries]
    assert store.audit.oldest_at() == left[-1].at
    assert store.sweep(audit_days=2).audit == 0


def test_acts_are_kept_to_the_end_of_the_last_day(store: Store, clock: Clock) -> None:
    clock.now = 20_000 * DAY + 5
    act(store)
    keys = audit_keys(store)
    clock.now = 20_010 * DAY + DAY - 1
    assert store.sweep(audit_days=10).audit == 0
    assert audit_keys(store) == keys
    clock.now = 20_011 * DAY
    assert store.sweep(audit_days=10).audit > 0
    assert audit_keys(store) == []
    assert store.audit.oldest_at() is None


def test_without_a_retention_nothing_is_forgotten(store: Store, clock: Clock) -> None:
    act(store)
    keys = audit_keys(store)
    clock.advance(100 * 365 * DAY)
    store.sweep()
    assert audit_keys(store) == keys


def test_an_interrupted_sweep_is_gone_on_with(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_retention, "STEP", 2)
    act(store, items=9)
    act(store, items=9)
    clock.advance(5 * DAY)
    act(store)
    everything = len(audit_keys(store))
    for steps in (1, 3, 7):
        sweep = audit_retention.sweep_audit(
            store.context.kv, store.context.keyspace, now_ms=store.context.clock.now_ms(), days=1
        )
        for _ in range(steps):
            next(sweep)  # then its process dies
    assert len(audit_keys(store)) < everything
    store.sweep(audit_days=1)
    young = store.audit.entries(since=moment(clock) - timedelta(minutes=1), limit=100).entries
    assert store.audit.entries(limit=100).entries == young
    assert young
    last_ids = {last_element(key).hex() for key in audit_keys(store)}
    assert last_ids == {entry.id for entry in young}, "no entry of an index is left behind"


def test_a_long_sweep_lets_what_falls_due_go_first(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_retention, "STEP", 1)
    for _ in range(5):
        act(store)
    clock.advance(30 * DAY)
    sweeper = Sweeper(store.context, audit_days=1, count=lambda: 0.0)
    first = sweeper.round()
    assert first.rest == 0.0, "there is more to do"
    store.queue("jobs").push(b"due", priority=0, delay=timedelta(seconds=1))
    clock.advance(2)
    assert sweeper.round().swept.promoted == 1
    assert len(audit_keys(store)) > 0
    assert sweeper.sweep().audit > 0
    assert audit_keys(store) == []


@pytest.mark.parametrize("days", [-1, True, 36_501, 1.5, "1"])
def test_a_retention_that_cannot_be_is_refused(store: Store, days: object) -> None:
    with pytest.raises(BadSetting, match="for ever"):
        store.sweep(audit_days=days)
