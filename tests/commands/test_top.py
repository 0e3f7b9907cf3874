"""`pqadmin top`: what its screen shows, what keys do, and that the terminal is whole afterwards."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.cells import cell_len

from pqadmin.commands.board_reader import BoardReader
from pqadmin.commands.top_view import Seen, View
from queues import Store, open_store
from tests.commands.conftest import PATIENCE, Run, Shop, command
from tests.commands.terminals import on_terminal
from tests.waiting import await_true

LEAVE = b"\x1b[?1049l\x1b[?25h"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """The same store, open in the test."""
    with open_store(url) as opened:
        fill(opened)
        yield opened


def fill(store: Store) -> None:
    """Make three queues, one with a dead item."""
    store.create_queue("mail", kind="fifo").enqueue(b"hello")
    store.create_queue("orders:eu").push_many([(b'{"n": 1}', 3), (b'{"n": 2}', 9)])
    broken = store.create_queue("broken")
    store.actions("ada").configure("broken", max_attempts=1)
    broken.push(b"x", priority=1)
    lease = broken.lease(seconds=60)
    broken.release(lease, reason="no address")


def test_the_screen_tells_verdicts_depths_and_both_ends_in_80_columns(url: str, store: Store) -> None:
    with on_terminal("top", "--store", url) as top:
        top.shows("orders:eu")
        assert len(top.screen) == 24
        assert max(map(cell_len, top.screen)) <= 80
        assert top.screen[0].startswith(" pqadmin top · 3 queues · 1\xa0warning")
        listed = [line.split() for line in top.screen[3:6]]
        assert [line[:6] for line in listed] == [
            ["▲", "broken", "0", "0", "0", "1"],
            ["●", "mail", "1", "0", "0", "0"],
            ["●", "orders:eu", "2", "0", "0", "0"],
        ]
        top.shows("▲ warning · 1 dead")
        top.type("\x1b[F")
        top.shows("── orders:eu ── int")
        assert [line.split()[:2] for line in top.screen if line.startswith((" min ", " max "))] == [
            ["min", "3"],
            ["max", "9"],
        ]
        assert '{"n": 1}' in top.text
        store.queue("orders:eu").pop_max()
        top.until(lambda: '{"n": 2}' not in top.text)
        top.resize(140, 30)
        top.until(lambda: len(top.screen) == 30)
        assert "Verdict" in top.screen[2]
        top.type("q")
        assert top.process.wait(PATIENCE) == 0


def test_keys_filter_open_pause_and_resume(url: str, store: Store) -> None:
    orders = store.queue("orders:eu")
    with on_terminal("top", "--store", url) as top:
        top.shows("orders:eu")
        top.type("/RDERS")
        top.until(lambda: "mail" not in top.text)
        top.shows("Filter: RDERS")
        top.type("\r")
        top.shows("[trouble, /RDERS]")
        top.type("\r")
        top.shows("Max end")
        top.type("ptoo  slowx\x7f\r")
        top.shows("Paused orders:eu.")
        entry = store.audit.entries().entries[0]
        assert (entry.verb, entry.reason) == ("pause", "too  slow")
        top.shows("too  slow")
        top.type("pn")
        top.type("p\x1b")
        top.shows("Esc back")
        assert store.audit.entries().entries[0].verb == "pause"
        top.type("py")
        top.shows("Resumed orders:eu.")
        assert orders.lease(seconds=60) is not None
        top.type("\x1b")
        top.shows("[trouble, /RDERS]")
        top.type("\x1b")
        top.shows("mail")
        top.type("t")
        top.until(lambda: "mail" not in top.text and "broken" in top.text)
        top.type("?")
        top.shows("lift the filter")
        top.type("\x03")
        assert top.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("end", ["q", "\x03", signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_terminal_is_whole_afterwards(url: str, store: Store, end: str | signal.Signals) -> None:
    with on_terminal("top", "--store", url) as top:
        before = top.modes
        top.shows("orders:eu")
        assert top.modes != before
        if isinstance(end, signal.Signals):
            top.process.send_signal(end)
        else:
            top.type(end)
        top.until(lambda: LEAVE in top.written)
        assert top.process.wait(PATIENCE) == (-9 if end is signal.SIGKILL else 0)
        await_true(lambda: top.modes == before)
    assert b"Traceback" not in top.written


def test_an_error_leaves_the_terminal_whole_too(tmp_path: Path) -> None:
    with on_terminal("top", "--store", f"lmdb:{tmp_path}/nowhere") as top:
        assert top.process.wait(PATIENCE) == 1
        top.until(lambda: b"There is no store" in top.written)
        assert b"\x1b[?1049" not in top.written


@pytest.mark.parametrize("variables", [{}, {"TERM": "dumb"}])
def test_without_a_terminal_it_says_what_to_use(url: str, store: Store, variables: dict[str, str]) -> None:
    if variables:
        with on_terminal("top", "--store", url, **variables) as top:
            assert top.process.wait(PATIENCE) == 1
        return
    with command("top", "--store", url, text=True) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (
        1,
        "top needs a terminal; queues --watch follows the queues without one.\n",
    )


def test_a_terminal_without_a_size_is_taken_for_a_usual_one(url: str, store: Store) -> None:
    with on_terminal("top", "--store", url, columns=0, lines=0) as top:
        top.shows("orders:eu")
        assert len(top.screen) == 24
        top.resize(100, 30)
        top.until(lambda: len(top.screen) == 30)


def drawn(view: View, width: int = 80, height: int = 24, clock: float = 0.0) -> list[str]:
    """Return the lines of a view's screen."""
    lines = view.draw(width, height, clock).plain.split("\n")
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width
    return lines


def test_hostile_names_values_and_reasons_stay_in_their_places(run: Run, shop: Shop) -> None:
    names = ["q" * 200, "订单:" + "单" * 60, "a"]
    for name in names:
        queue = shop.store.create_queue(name, priority_type="str")
        queue.push(b"\x1b[2J\nvalue\x9b" * 100, priority="\x1b[31m" * 40)
        queue.pause(reason="\x1b]0;t\x07[red]" * 40, by="ada")
    rows, now = BoardReader(shop.store).read()
    for width in (80, 132):
        for mode in ("list", "open", "help"):
            view = View(seen=Seen(rows=rows, now=now), mode=mode, chosen=rows[0].status.id)
            text = "".join(drawn(view, width))
            assert not any(char < " " or "\x7f" <= char < "\xa0" for char in text)
    list_of = drawn(View(seen=Seen(rows=rows, now=now)))
    assert len({line[3:29] for line in list_of[3:6]}) == 3


@pytest.mark.parametrize("mode", ["list", "open", "help"])
def test_a_terminal_of_any_size_is_drawn_on(run: Run, shop: Shop, mode: str) -> None:
    fill(shop.store)
    rows, now = BoardReader(shop.store).read()
    for width in (1, 2, 3, 5, 8, 13, 21, 34, 55, 80):
        for height in (1, 2, 3, 5, 8, 13, 24):
            drawn(View(seen=Seen(rows=rows, now=now), mode=mode, chosen=rows[0].status.id), width, height)


def test_long_priorities_are_told_whole_or_as_cut(run: Run, shop: Shop) -> None:
    shop.store.create_queue("times").push_many([(b"a", 1795968934989), (b"b", 10**100)])
    shop.store.create_queue("words", priority_type="str").push(b"c", "单" * 40)
    rows, now = BoardReader(shop.store).read()
    for row in rows:
        for mode in ("list", "open"):
            text = "\n".join(drawn(View(seen=Seen(rows=rows, now=now), mode=mode, chosen=row.status.id), 100))
            for wanted in (" 1795968934989 ", "0…00000 ") if row.status.name == "times" else ("单…",):
                assert wanted in text


def test_numbers_of_items_without_room_are_told_in_short(run: Run, shop: Shop) -> None:
    shop.store.create_queue("jobs").push(b"a", 1)
    (row,), now = BoardReader(shop.store).read()
    many = replace(row.status.totals, ready=1_234_567, delayed=99_999, leased=100_000, dead=10_000)
    row = replace(row, status=replace(row.status, totals=many))
    line = drawn(View(seen=Seen(rows=[row], now=now)))[3]
    assert line[28:58].replace("\u202f", ",").split() == ["1.2M", "99,999", "100k", "10k"]


def test_numbers_that_are_old_say_so(run: Run, shop: Shop) -> None:
    shop.store.create_queue("jobs")
    rows, now = BoardReader(shop.store).read()
    view = View(seen=Seen(rows=rows, now=now, read=100.0))
    assert "old" not in drawn(view, clock=101.0)[0]
    assert drawn(view, clock=190.0)[0].endswith("90 s old: no answer ")
    view.seen = Seen(rows=rows, now=now, read=100.0, failure="The cluster\ndoes not answer.")
    assert "The cluster" in drawn(view, clock=101.0)[0]
    assert "jobs" in drawn(view, clock=101.0)[3], "the last numbers stay"


def test_a_choice_stays_with_its_queue_while_the_order_changes(run: Run, shop: Shop) -> None:
    for n in range(60):
        shop.store.create_queue(f"q{n:02}")
    reader = BoardReader(shop.store)
    rows, now = reader.read()
    view = View(seen=Seen(rows=rows, now=now))
    drawn(view)
    for _ in range(40):
        view.key("down", 24)
    lines = drawn(view)
    assert "── q40 ──" in "\n".join(lines)
    assert any(line.startswith(" ● q40 ") for line in lines)
    shop.store.actions("ada").pause("q59", reason="deploy")
    rows, now = reader.read()
    view.seen = Seen(rows=rows, now=now)
    assert "── q40 ──" in "\n".join(drawn(view))
    view.key("home", 24)
    assert "── q59 ──" in "\n".join(drawn(view)), "the worst is first"


def test_what_is_deleted_or_not_read_yet_is_told(run: Run) -> None:
    assert "Reading the queues" in "\n".join(drawn(View(url="lmdb:x")))
    assert "No queues." in "\n".join(drawn(View(seen=Seen(now=datetime.now(UTC)))))
    gone = View(seen=Seen(now=datetime.now(UTC)), mode="open", chosen=7)
    assert "was deleted" in "\n".join(drawn(gone))
