"""attach and detach, and the other commands on a foreign queue."""

import re

import fdb.tuple
import pytest

from tests.commands.conftest import Run, Shop
from tests.others import PREFIX, Others


@pytest.fixture
def others(shop: Shop) -> Others:
    """A program that pushed three items."""
    program = Others(shop.store)
    program.push((5, b"five"), (1, b"one"), ("text", fdb.tuple.pack(("dispatch", 71))))
    return program


@pytest.mark.parametrize("prefix", ['("legacy", "jobs")', "0x" + PREFIX.hex(), r"\x02legacy\x00\x02jobs\x00"])
def test_attach_reads_a_prefix_however_it_is_written(run: Run, shop: Shop, others: Others, prefix: str) -> None:
    answer = run("attach", "legacy", "--prefix", prefix, "--reason", "to see it")
    assert answer.out == "Attached legacy at ('legacy', 'jobs').\n"
    assert shop.store.queue("legacy").config.prefix == PREFIX
    entry = shop.store.audit.entries().entries[0]
    assert (entry.verb, entry.via, entry.reason) == ("attach", "cli", "to see it")


def test_attach_prints_what_was_attached(run: Run, shop: Shop) -> None:
    answer = run("attach", "box", "--prefix", "box", "--kind", "fifo", "--json")
    box = {"queue": "box", "id": shop.store.queue("box").id, "kind": "fifo", "priority_type": None, "codec": "bytes"}
    assert answer.json == {**box, "prefix": b"box".hex()}
    assert "It has no items now." in run("attach", "floats", "--prefix", "0x15ff", "--priority-type", "float").out
    assert shop.store.queue("floats").priority_type == "float"


@pytest.mark.parametrize(
    ("prefix", "words"),
    [("(1", "not understood"), ("0x0", "pairs of hexadecimal"), ("", "Name the prefix"), ('("pq",)', "overlaps")],
)
def test_attach_refuses_what_is_no_prefix(run: Run, shop: Shop, prefix: str, words: str) -> None:
    answer = run("attach", "legacy", "--prefix", prefix)
    assert answer.code == 1
    assert words in answer.error
    assert shop.store.queues() == []


def test_detach_leaves_the_items(run: Run, shop: Shop, others: Others) -> None:
    run("attach", "legacy", "--prefix", '("legacy", "jobs")')
    assert "stay where they are" in run("detach", "legacy").out
    assert others.depth() == 3
    assert shop.store.queues() == []
    shop.store.create_queue("ours")
    assert "nothing attached" in run("detach", "ours").error
    assert run("detach", "legacy").code == 1


def test_depth_counts_and_says_when(run: Run, shop: Shop, others: Others) -> None:
    shop.store.create_queue("ours").push(b"x", priority=1)
    run("attach", "legacy", "--prefix", '("legacy", "jobs")')
    answer = run("depth", "legacy")
    assert answer.out == "3\n"
    assert re.search(r"legacy is attached: counted \d\d:\d\d:\d\d UTC", answer.err)
    assert run("depth", "legacy", "ours").out == "3\tlegacy\n1\tours\n"
    assert run("depth", "legacy", "ours", "--all").out == "3\t0\t0\t0\tlegacy\n1\t0\t0\t0\tours\n"
    legacy, ours = run("depth", "legacy", "ours", "--json").json["depths"]
    assert (legacy["ready"], ours["ready"]) == (3, 1)
    assert legacy["counted_at"] is not None
    assert ours["counted_at"] is None


def test_queues_lists_it_with_its_count(run: Run, shop: Shop, others: Others) -> None:
    run("attach", "legacy", "--prefix", '("legacy", "jobs")')
    shop.store.create_queue("ours")
    line = next(line for line in run("queues").out.splitlines() if line.startswith("legacy"))
    assert re.search(r"≈\s3\s+'text'\s+5\s+–\s+◌\sunknown · attached, traffic not seen · counted \d", line), line
    legacy, ours = run("queues", "--json").json["queues"]
    assert legacy["prefix"] == PREFIX.hex()
    assert (legacy["ready"], legacy["arrived"], legacy["left"], legacy["oldest"]) == (3, None, None, None)
    assert legacy["counted_at"] is not None
    assert (ours["prefix"], ours["counted_at"], ours["arrived"]) == (None, None, 0)
    assert [shape["verdict"]["level"] for shape in (legacy, ours)] == ["unknown", "ok"]
    assert run("queues", "--trouble").out == "No queue is in trouble.\n"


def test_a_list_that_is_not_counted_in_time_says_so(run: Run, others: Others, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pqadmin.commands.management.commands.queues._PATIENCE", 0.0)
    monkeypatch.setattr("queues.status.attached_counts.AttachedCounts.want", lambda *_: None)
    run("attach", "legacy", "--prefix", '("legacy", "jobs")')
    assert "counting…" in run("queues").out
    assert run("queues", "--json").json["queues"][0]["ready"] is None


def test_push_peek_and_pop_among_the_items_of_other_programs(run: Run, others: Others) -> None:
    run("attach", "legacy", "--prefix", '("legacy", "jobs")')
    assert run("push", "legacy", "ours", "--priority", "9").code == 0
    items = run("peek", "legacy", "-n", "9", "--json").json["items"]
    assert [item["priority"] for item in items] == ["text", 1, 5, 9]
    assert items[0]["key"].startswith("('text', 2, ")
    assert items[0]["pushed_at"] is None
    assert "('dispatch', 71)" in run("peek", "legacy").out
    taken = run("pop", "legacy", "--end", "max", "--json").json["items"][0]
    assert taken["value"] == "ours"
    assert others.take(last=True) == b"five"
    assert "attached queue" in run("pause", "legacy", "--reason", "no").error
