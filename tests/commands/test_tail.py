"""`pqadmin tail`: what happens in a queue, by items and by numbers."""

import fcntl
import json
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import pytest

from pqadmin.commands import queue_diff
from pqadmin.commands.queue_diff import Changes
from queues import PriorityQueue, Store, open_store
from tests.commands.conftest import PATIENCE, Run, Shop, command
from tests.others import Others
from tests.waiting import await_true, begin


@pytest.fixture
def jobs(shop: Shop) -> PriorityQueue:
    """A queue with one item."""
    queue = shop.store.create_queue("jobs")
    queue.push(b"old", priority=5)
    return queue


def told(shop: Shop, queue: PriorityQueue, act: Callable[[], object], *, most: int = 50) -> Changes:
    """Return what two looks around an act tell."""
    before = queue_diff.look(shop.store, queue)
    act()
    return queue_diff.changes(before, queue_diff.look(shop.store, queue), find=queue.find, most=most)


def words(found: Changes) -> list[tuple[str, str, bytes]]:
    """Return what, by which verb, and the value of each item."""
    return [(event.what, event.verb, event.item.raw) for event in found.events]


def test_each_change_of_an_item_is_told_by_its_word(shop: Shop, jobs: PriorityQueue) -> None:
    acts = shop.store.actions("ada")
    acts.configure("jobs", max_attempts=2)

    def release() -> None:
        (item,) = jobs.leased().items
        acts.release("jobs", [item.id], reason="no address")

    steps: list[tuple[Callable[[], object], list[tuple[str, str]]]] = [
        (lambda: jobs.lease(seconds=60), [("leased", "lease")]),
        (release, [("released", "release")]),
        (lambda: jobs.lease(seconds=60), [("leased", "lease")]),
        (release, [("dead", "release")]),
        (lambda: acts.retry_dead("jobs", [item.id for item in jobs.dead().items]), [("retried", "retry")]),
        (jobs.pop_min, [("gone", "pop")]),
        (lambda: jobs.push(b"new", priority=1, delay=timedelta(hours=1)), [("pushed", "push")]),
        (lambda: acts.promote("jobs", [item.id for item in jobs.delayed().items]), [("ready", "promote")]),
        (lambda: acts.delete_items("jobs", [jobs.peek_min().id]), [("gone", "delete")]),
        (lambda: None, []),
    ]
    for act, expected in steps:
        found = told(shop, jobs, act)
        assert [(event.what, event.verb) for event in found.events] == expected
        assert not found.more


def test_what_came_and_went_between_two_looks_is_told_by_numbers(shop: Shop, jobs: PriorityQueue) -> None:
    def act() -> None:
        jobs.push_many([(b"a", 1), (b"b", 2), (b"c", 9)])
        jobs.pop_many(2)

    found = told(shop, jobs, act)
    assert words(found) == [("pushed", "push", b"c")]
    assert found.more == {"push": 2, "pop": 2}


def test_of_a_deep_queue_no_item_is_told_that_only_came_into_sight(shop: Shop) -> None:
    deep = shop.store.create_queue("deep")
    deep.push_many([(b"%d" % n, n) for n in range(1_000)])
    assert words(told(shop, deep, deep.pop_min)) == [("gone", "pop", b"0")]
    found = told(shop, deep, lambda: deep.push(b"middle", priority=500))
    assert (words(found), found.more) == ([], {"push": 1})
    found = told(shop, deep, lambda: deep.pop_many(300), most=10)
    assert len(found.events) == 10
    assert found.more == {"pop": 290}


def test_of_an_attached_queue_is_told_what_is_seen(run: Run, shop: Shop, others: Others) -> None:
    run("attach", "legacy", "--prefix", '("legacy", "jobs")')
    legacy = shop.store.priority_queue("legacy")
    taken = legacy.peek_min().raw
    found = told(shop, legacy, legacy.pop_min)
    assert (words(found), found.more) == ([("gone", "", taken)], {})


@contextmanager
def again(act: Callable[[], object]) -> Iterator[None]:
    """Act again and again while the block waits for a process that may not have begun to look."""
    seen = threading.Event()

    def run() -> None:
        while not seen.wait(0.05):
            act()

    acting = begin(run)
    try:
        yield
    finally:
        seen.set()
        acting.result(PATIENCE)


@pytest.fixture
def others(shop: Shop) -> Others:
    """A program that pushed an item."""
    program = Others(shop.store)
    program.push((5, b"five"))
    return program


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store that several processes can open."""
    with open_store(f"lmdb:{tmp_path / 'store'}") as opened:
        yield opened


@pytest.fixture
def url(store: Store) -> str:
    """Where a process finds that store."""
    return store.url


def unread(pipe: IO[bytes]) -> int:
    """Return how many bytes a pipe holds."""
    found = fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4)
    return int.from_bytes(found, sys.byteorder)


def test_a_process_follows_a_queue_and_ends_by_ctrl_c(store: Store, url: str) -> None:
    mail = store.create_queue("mail")
    with command("tail", "mail", "--jsonl", "--store", url, text=True) as process:
        told: Iterator[dict[str, Any]] = map(json.loads, process.stdout)
        acts = store.actions("ada")
        with again(lambda: (acts.resume("mail"), acts.pause("mail", reason="deploy"))):
            paused = next(one for one in told if one["event"] == "pause" and one["pause"])
        assert paused["pause"]["reason"] == "deploy"
        acts.resume("mail")
        item = mail.push(b"x" * 5_000, priority=7)
        pushed = next(one for one in told if one["event"] == "pushed")
        assert (pushed["queue"], pushed["verb"], pushed["item"]["id"]) == ("mail", "push", item.id)
        assert (pushed["item"]["value"], pushed["item"]["size"]) == (None, 5_000)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")


def test_a_released_item_is_told_with_the_reason(store: Store, url: str) -> None:
    mail = store.create_queue("mail")
    item = mail.push(b"hello", priority=7)
    with command("tail", "mail", "--store", url, text=True) as process:
        with again(lambda: mail.push(b"begun", priority=9)):
            process.stdout.readline()
        lease = mail.lease(seconds=60, worker="press")
        assert next(line for line in process.stdout if "leased" in line).rstrip().endswith(f"7  {item.id}  by press")
        mail.release(lease, reason="no\naddress")
        line = next(line for line in process.stdout if "released" in line)
        assert line.rstrip().endswith("ready, attempt 1: no ↵ address")
        process.terminate()


def test_of_a_delayed_item_is_told_when_it_is_due(store: Store, url: str) -> None:
    mail = store.create_queue("mail", kind="fifo")
    with command("tail", "mail", "--store", url, text=True) as process:
        with again(lambda: mail.enqueue(b"begun")):
            process.stdout.readline()
        item = mail.enqueue(b"hello", delay=timedelta(hours=1))
        line = next(line for line in process.stdout if item.id in line)
        assert line.rstrip().endswith(f"{item.id}  delayed, due {item.due_at:%Y-%m-%d %H:%M:%S} UTC: hello")
        process.terminate()


def test_its_lines_are_harmless_and_a_queue_that_is_deleted_ends_it(store: Store, url: str) -> None:
    mail = store.create_queue("mail", priority_type="str")
    with command("tail", "mail", "--store", url, text=True) as process:
        acts = store.actions("ada")
        with again(lambda: mail.push(b"\x1b[2Jhello\nworld", priority="\x1b]0;t\x07")):
            line = process.stdout.readline().rstrip("\n")
        assert "hello" in line or "pushed" in line
        assert all(char >= " " for char in line)
        acts.delete_queue("mail", confirm="mail")
        _, err = process.communicate(timeout=PATIENCE)
    gone = "The queue that had the name “mail” is gone.\n", "No queue is named “mail”.\n"  # of a store, and of a site
    assert process.returncode == 1
    assert err in gone


@pytest.mark.parametrize("words", [["tail", "mail"], ["tail", "mail", "--json"], ["queues", "--watch"]])
def test_a_stop_ends_a_command_of_which_the_output_is_not_read(store: Store, url: str, words: list[str]) -> None:
    mail = store.create_queue("mail")
    for n in range(50 if words[0] == "queues" else 0):
        store.create_queue(f"mail-{n}-{'x' * 150}")
    with command(*words, "--store", url) as process:
        with again(lambda: mail.push_many([(b"x" * 90, n) for n in range(60)])):
            await_true(lambda: unread(process.stdout) > 50_000)
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""
