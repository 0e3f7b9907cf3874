"""`pqadmin queues`: trouble, and the list that stays."""

import io
import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from pqadmin.commands.board_reader import BoardReader
from pqadmin.commands.queue_columns import queue_list
from pqadmin.commands.top_view import Seen, View
from queues import Queue, Store
from tests.commands.conftest import PATIENCE, Run, Shop, command
from tests.commands.terminals import on_terminal


def test_trouble_lists_what_is_not_ok_the_worst_first(run: Run, shop: Shop) -> None:
    acts = shop.store.actions("ada")
    for name in ("a:damaged", "b:paused", "c:empty", "d:dead"):
        shop.store.create_queue(name)
    assert run("queues", "--trouble").out == "No queue is in trouble.\n"
    config = shop.store.context.keyspace.configs.key(shop.store.queue("a:damaged").id)
    shop.store.transact(lambda tr: tr.set(config, b"\x01\x00\x00\x02[]"))
    acts.pause("b:paused", reason="deploy")
    acts.configure("d:dead", max_attempts=1)
    broken = shop.store.priority_queue("d:dead")
    broken.push(b"x", priority=1)
    lease = broken.lease(seconds=60)
    broken.release(lease, reason="no address")
    listed = run("queues", "--trouble", "--json").json["queues"]
    assert [(shape["queue"], shape["verdict"]["level"]) for shape in listed] == [
        ("d:dead", "warning"),
        ("b:paused", "warning"),
        ("a:damaged", "unknown"),
    ]
    assert [line.split()[0] for line in run("queues", "--trouble").out.splitlines()][1:] == [
        "d:dead",
        "b:paused",
        "a:damaged",
    ]


def test_of_equally_bad_queues_the_one_where_more_items_wait_comes_first(run: Run, shop: Shop) -> None:
    depths = {"a": 3, "b": 0, "c": 120, "d": 4, "e": 15}
    for name, depth in depths.items():
        shop.store.create_queue(name).push_many([(b"x", n) for n in range(depth)])
        shop.store.actions("ada").pause(name, reason="deploy")
    listed = run("queues", "--trouble", "--json").json["queues"]
    assert [shape["queue"] for shape in listed] == ["c", "e", "a", "d", "b"]
    rows, now = BoardReader(shop.store).read()
    assert [row.status.name for row in View(seen=Seen(rows=rows, now=now)).rows()] == ["c", "e", "a", "d", "b"]


def test_the_verdict_is_the_recorded_one(run: Run, shop: Shop, jobs: Queue) -> None:
    """What one process recorded for hours is told by a command that looks for a moment."""
    jobs.push(b"x", priority=1)
    recorder = shop.store.recorder()
    recorder.look()
    recorder.flush()
    (shape,) = run("queues", "--json").json["queues"]
    assert (shape["verdict"]["level"], [reason["code"] for reason in shape["verdict"]["reasons"]]) == ("ok", ["quiet"])


def test_jsonl_prints_a_line_for_each(run: Run, jobs: Queue) -> None:
    jobs.push_many([(b"a", 1), (b"b", 2)])

    def lines(*arguments: str) -> list[Any]:
        return [json.loads(line) for line in run(*arguments, "--jsonl").out.splitlines()]

    assert [line["queue"] for line in lines("queues")] == ["jobs"]
    assert [(line["queue"], line["value"]) for line in lines("peek", "jobs", "-n", "5")] == [
        ("jobs", "a"),
        ("jobs", "b"),
    ]
    assert [line["ready"] for line in lines("depth", "jobs")] == [2]
    (leased,) = lines("lease", "jobs")
    assert (leased["queue"], leased["value"], leased["token"][:2].isalnum()) == ("jobs", "a", True)
    assert [line["value"] for line in lines("pop", "jobs")] == ["b"]
    assert lines("pop", "jobs", "--exit-empty=0") == []
    assert lines("configure", "jobs")[0]["queue"] == "jobs"
    assert "not allowed with" in run("queues", "--json", "--jsonl").error


def changes(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a list that stays."""
    return map(json.loads, process.stdout)


def test_the_list_that_stays_prints_a_line_for_each_change(url: str, store: Store, jobs: Queue) -> None:
    store.create_queue("idle")
    with command("queues", "--watch", "--jsonl", "--store", url, text=True) as process:
        told = changes(process)
        assert {next(told)["queue"], next(told)["queue"]} == {"idle", "jobs"}
        jobs.push(b"x", priority=7)
        assert next(one for one in told if one["queue"] == "jobs" and one["ready"] == 1)["min_priority"] == 7
        store.actions("ada").delete_queue("idle", confirm="idle")
        assert next(one for one in told if one["queue"] == "idle" and "gone" in one)["gone"] is True
        store.create_queue("new")
        assert next(one for one in told if one["queue"] == "new")["ready"] == 0
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")


def test_on_a_terminal_the_list_stays_in_its_place_until_ctrl_c(url: str, store: Store, jobs: Queue) -> None:
    with on_terminal("queues", "--watch", "--store", url) as terminal:
        before = terminal.modes
        terminal.until(lambda: b"jobs" in terminal.written)
        jobs.push(b"x", priority=7)
        terminal.until(lambda: re.search(rb"jobs +1 ", terminal.written))
        terminal.type("\x03")
        terminal.until(lambda: b"\x1b[?25h" in terminal.written)
        assert terminal.process.wait(PATIENCE) == 0
        assert terminal.modes == before
    assert terminal.written.count(b"Queue ") == terminal.written.count(b"jobs "), "each frame replaces the one before"
    assert b"\x1b[1A" in terminal.written


def test_trouble_that_is_over_leaves_the_list_that_stays(url: str, store: Store) -> None:
    store.create_queue("jobs")
    acts = store.actions("ada")
    acts.pause("jobs", reason="deploy")
    with command("queues", "--watch", "--trouble", "--jsonl", "--store", url, text=True) as process:
        told = changes(process)
        assert next(told)["verdict"]["reasons"][0]["code"] == "paused"
        acts.resume("jobs")
        assert next(one for one in told if "gone" in one) == {"queue": "jobs", "gone": True}
        process.terminate()


def test_the_list_that_stays_ends_quietly_when_its_reader_does(url: str, store: Store, jobs: Queue) -> None:
    with command("queues", "--watch", "--store", url, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        jobs.push(b"x", priority=7)
        assert process.wait(PATIENCE) == 141
        assert process.stderr.read() == ""


@pytest.mark.parametrize(("width", "columns"), [(40, "Queue Ready Dead Oldest"), (20, "Queue Ready")])
@pytest.mark.parametrize("rates", [False, True])
def test_on_a_very_narrow_terminal_columns_are_left_out_and_each_queue_keeps_its_line(
    shop: Shop, width: int, columns: str, rates: bool
) -> None:
    for name in ("orders:eu:north:fulfilment", "mail"):
        shop.store.create_queue(name)
    rows, now = BoardReader(shop.store).read()
    out = io.StringIO()
    Console(file=out, width=width).print(queue_list(rows, now, width=width, rates=rates))
    head, *lines = out.getvalue().splitlines()
    assert " ".join(head.split()) == columns
    assert [line.split()[0] for line in lines] == ["●", "●"]
    assert max(map(len, [head, *lines])) <= width


def test_on_a_narrow_terminal_names_are_whole_and_reasons_have_lines_of_their_own(shop: Shop) -> None:
    acts = shop.store.actions("ada")
    for name in ("orders:eu:north:fulfilment", "orders:eu:south:fulfilment", "оrders"):
        shop.store.create_queue(name)
    acts.pause("orders:eu:north:fulfilment", reason="the warehouse moves to another town, " * 4)
    rows, now = BoardReader(shop.store).read()
    out = io.StringIO()
    Console(file=out, width=80).print(queue_list(rows, now, width=80, rates=False))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[:3] for line in lines if line[1] in "●▲"] == [
        ["▲", "orders:eu:north:fulfilment", "0"],
        ["●", "orders:eu:south:fulfilment", "0"],
        ["●", "оrders", "0"],
    ]
    assert "warehouse moves" in " ".join(lines[2:4])
    assert "looks like another name" in lines[-1]
