"""`pqadmin targets`: what it shows and sets, and what it refuses."""

import pytest

from queues.model.limits import Limits
from tests.commands.conftest import Run, Shop


def test_targets_of_a_queue_are_set_shown_with_their_origin_and_removed(run: Run, shop: Shop) -> None:
    shop.store.create_queue("orders:eu")
    run("targets", "orders:*", "--oldest=15min", "--dead=off", "--reason=agreed")
    shown = run("targets", "orders:eu", "--depth", "1000", "--wait=1h 30min", "--json").json
    assert shown["queue"] == "orders:eu"
    day = {"last_24_h": {"in_breach": 0, "unknown": 1}}
    assert shown["targets"]["depth"] == {"limit": 1_000, "from": "queue", "pattern": None, **day}
    assert shown["targets"]["wait"] == {"limit": 5_400, "from": "queue", "pattern": None, **day}
    assert shown["targets"]["oldest"] == {"limit": 900, "from": "pattern", "pattern": "orders:*", **day}
    assert shown["targets"]["no_consumer"] == {"limit": 60, "from": "default", "pattern": None, **day}
    said = run("targets", "orders:eu").out
    assert "oldest: 15 min (pattern orders:*); in breach in the last 24 h: unknown\n" in said
    assert "dead: off (pattern orders:*)\n" in said
    run("targets", "orders:eu", "--wait=inherit")
    assert shop.store.queue("orders:eu").config.target_wait is None
    run("targets", "orders:eu", "--remove")
    assert shop.store.queue("orders:eu").config.target_depth is None
    assert [entry.reason for entry in shop.store.audit.entries(verb="set_targets").entries] == ["agreed"]


def test_patterns_are_listed_changed_limit_by_limit_and_removed(run: Run, shop: Shop) -> None:
    run("targets", "orders:*", "--oldest=900", "--dead=3")
    run("targets", "orders:*", "--dead=inherit", "--growing=10min")
    run("targets", "mail", "--pattern", "--depth=5")
    listed = run("targets", "--json").json
    assert listed == {
        "defaults": {"depth": 0, "oldest": 900, "wait": 0, "dead": 1, "no_consumer": 60, "growing": 120},
        "patterns": [
            {"pattern": "orders:*", "targets": {"oldest": 900, "growing": 600}},
            {"pattern": "mail", "targets": {"depth": 5}},
        ],
        "unreadable": [],
    }
    said = run("targets").out
    assert "orders:*: oldest 15 min, growing 10 min" in said
    assert "defaults: depth off, oldest 15 min" in said
    assert "removed" in run("targets", "orders:*", "--remove").out
    assert shop.store.targets.patterns() == {"mail": Limits(depth=5)}
    assert run("targets", "orders:*", "--remove").code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "--oldest=soon"),
        ("jobs", "--depth=-1"),
        ("jobs", "--depth=many"),
        ("jobs", "--growing=1min"),
        ("jobs", "--remove", "--dead=1"),
        ("jobs/*", "--dead=1"),
        ("nowhere",),
        ("--dead=1",),
        ("--remove",),
        ("jo*", "--dead=inherit"),
    ],
)
def test_what_is_wrong_changes_nothing(run: Run, shop: Shop, arguments: tuple[str, ...]) -> None:
    shop.store.create_queue("jobs")
    assert run("targets", *arguments).code != 0
    assert shop.store.targets.patterns() == {}
    assert {target.origin.value for target in shop.store.targets.of("jobs").values()} == {"default"}
