"""doctor as people run it: what it prints, its JSON, its exit codes."""

import json
import time

import pytest

from queues import Store, open_store
from queues.catalog.store_record import FORMAT
from queues.items.counters import total_bytes
from queues.serving.clock import SKEWED
from tests.commands.conftest import Run, Shop


@pytest.fixture
def store(shop: Shop) -> Store:
    """A store with two queues and five items."""
    shop.store.create_queue("jobs").push_many([(b"x", n) for n in range(4)])
    shop.store.create_queue("mail", kind="fifo").enqueue(b"y")
    return shop.store


def damage(store: Store) -> None:
    """Let a counter and a drift flag be wrong."""
    keys = store.context.keyspace.queue(store.queue("jobs").id)

    def write(tr):
        tr.add(keys.generation(1).counters.key("ready", "in"), 3)
        tr.set(keys.drift, total_bytes(1))

    store.transact(write)


def test_a_healthy_store_ends_with_0(run: Run, store: Store) -> None:
    answer = run("doctor")
    assert (answer.code, answer.out) == (0, f"Healthy: 2 queues with 5 items counted, store format {FORMAT}.\n")
    assert run("doctor", "--repair").out == answer.out


def test_damage_ends_with_1_and_repair_mends_it(run: Run, store: Store) -> None:
    damage(store)
    answer = run("doctor")
    assert (answer.code, answer.error) == (1, "2 things are wrong; --repair repairs what can be repaired.")
    assert answer.out.splitlines() == [
        "Wrong: jobs: 4 items are ready, the counters say 7.",
        "Wrong: jobs: The drift flag is up: a pop found nothing where counters said otherwise.",
    ]
    assert store.queue("jobs").depth() == 7, "nothing is changed without --repair"
    mended = run("doctor", "--repair")
    assert mended.code == 0
    assert mended.out.splitlines() == [
        "Mended: jobs: the counters said 7 ready, 4 are there; now they agree.",
        "Mended: jobs: the drift flag is down, as the counters are right.",
        f"Healthy: 2 queues with 5 items counted, store format {FORMAT}.",
    ]
    assert store.queue("jobs").depth() == 4
    assert run("doctor").code == 0


def test_keys_of_the_application_are_counted_by_space(run: Run, store: Store) -> None:
    store.space("app").set("a", b"")
    store.space("app").set("b", b"")
    store.space("once").set("a", b"")
    assert run("doctor").out.splitlines()[:2] == [
        "Space app: 2 keys of the application, not examined.",
        "Space once: 1 key of the application, not examined.",
    ]
    assert json.loads(run("doctor", "--json").out)["spaces"] == {"app": 2, "once": 1}


def test_what_cannot_be_mended_ends_with_1_even_so(run: Run, store: Store) -> None:
    store.transact(lambda tr: tr.set(store.context.keyspace.configs.key(99), b"\x09"))
    answer = run("doctor", "--repair")
    assert (answer.code, answer.error) == (1, "1 thing is wrong and could not be repaired.")
    assert answer.out == "Still wrong: The record of queue number 99 cannot be read, and is left as it is.\n"


def test_what_detached_queues_left_is_told_in_words_of_queues(run: Run, store: Store) -> None:
    store.attach("theirs", prefix=("their",)).push(b"x", priority=1)
    store.detach("theirs")
    healthy = f"Healthy: 2 queues with 5 items counted, store format {FORMAT}."
    left = "Counters of 1 detached or lost queue are left behind and count nothing any more; --repair clears them."
    assert run("doctor").out.splitlines() == [f"Note: {left}", healthy]
    assert run("doctor", "--repair").out.splitlines() == [
        "Mended: Cleared counters that 1 detached or lost queue had left behind.",
        healthy,
    ]
    assert run("doctor").out.splitlines() == [healthy]


def test_findings_are_told_as_json(run: Run, store: Store) -> None:
    damage(store)
    answer = run("doctor", "--json")
    assert answer.code == 1
    shape = answer.json
    assert (shape["healthy"], shape["queues"], shape["items"], shape["format"]) == (False, 2, 5, FORMAT)
    assert shape["store_id"] == store.id
    assert shape["findings"][0] == {
        "kind": "counter",
        "queue": "jobs",
        "says": "4 items are ready, the counters say 7.",
        "mendable": True,
    }
    mended = run("doctor", "--json", "--repair").json
    assert (mended["healthy"], mended["findings"], len(mended["mended"])) == (True, [], 2)


def test_an_attached_queue_is_a_note(run: Run, store: Store) -> None:
    store.attach("theirs", prefix=("their",))
    answer = run("doctor")
    assert answer.code == 0
    assert answer.out.splitlines()[0].startswith("Note: theirs is attached")


@pytest.mark.parametrize(("days", "kept"), [("400", "for 400 days"), ("0", "for ever")])
def test_it_says_since_when_the_audit_holds_acts(run: Run, store: Store, settings, days: str, kept: str) -> None:
    settings.PQADMIN_AUDIT_DAYS = int(days)
    store.actions("ann").pause("jobs", reason="r")
    oldest = store.audit.oldest_at()
    assert oldest is not None
    told = f"The audit keeps its records {kept} (PQADMIN_AUDIT_DAYS); the oldest is of {oldest:%Y-%m-%d %H:%M} UTC."
    assert told in run("doctor").out.splitlines()
    found = run("doctor", "--json").json["audit"]
    assert (found["days"], found["since"][:10]) == (int(days), f"{oldest:%Y-%m-%d}")


# The clock


def test_clocks_that_differ_are_noted(run: Run, store: Store) -> None:
    assert "clock" not in run("doctor").out
    assert abs(run("doctor", "--json").json["clock"]["skew_seconds"]) < SKEWED
    set_ahead(store, 3_600.0)
    answer = run("doctor")
    assert answer.code == 0
    assert "Note: This process's clock is 1 h 0 min behind the store's, which shows 2" in answer.out
    assert run("doctor", "--json").json["clock"]["skew_seconds"] == pytest.approx(-3_600, abs=1)


def test_the_stores_clock_is_set_by_this_machines(run: Run, store: Store) -> None:
    set_ahead(store, 3_600.0)
    answer = run("doctor", "--set-clock")
    assert answer.code == 0
    assert answer.out.startswith("The store's clock was set back by 1 h 0 min: 2")
    store.clock.calibrate()
    assert abs(store.skew) < 1
    assert "clock" not in run("doctor").out
    told = run("doctor", "--set-clock", "--json").json
    assert told["forward_seconds"] == pytest.approx(0, abs=1)
    assert {entry.verb for entry in store.audit.entries().entries} == {"set_clock"}


def test_repair_and_set_clock_are_asked_for_one_at_a_time(run: Run, store: Store) -> None:
    answer = run("doctor", "--repair", "--set-clock")
    assert "not allowed with" in answer.error
    assert not store.audit.entries().entries


def set_ahead(store: Store, seconds: float) -> None:
    """Let the store's clock have been set by a machine whose clock is ahead."""
    with open_store(store.url, wall=lambda: time.time() + seconds) as wrong:
        wrong.set_clock(by="boss")
    store.clock.calibrate()
