"""Sparklines say what is known of the last hour, and nothing of what is not."""

from dataclasses import replace
from datetime import UTC, datetime

from pqadmin.live.board.sparklines import COLUMNS, HEIGHT, SPAN, Sparks, path
from queues import Store
from queues.history import Point, Stretch

NOW = 1_800_000_000.0


def point(ago: float, ready: int) -> Point:
    return Point(at=int(NOW - ago), ready=ready, delayed=0, leased=0, dead=0, arrived=0, left=0, oldest_at=None)


def test_nothing_is_drawn_of_unknown_times() -> None:
    assert path(None, 5, NOW) == ""
    assert path(Stretch(points=[], before=None), 5, NOW) == ""


def test_a_queue_that_rests_is_a_straight_line() -> None:
    assert path(Stretch(points=[], before=point(SPAN + 60, 0)), 0, NOW) == f"M0 {HEIGHT}h{COLUMNS}"
    assert path(Stretch(points=[], before=point(SPAN + 60, 7)), 7, NOW) == f"M0 3h{COLUMNS}"
    assert path(Stretch(points=[], before=point(SPAN + 60, 700)), 700, NOW) == f"M0 0h{COLUMNS}"


def test_one_item_is_no_peak() -> None:
    line = path(Stretch(points=[], before=point(SPAN + 60, 0)), 1, NOW)
    assert line == f"M0 {HEIGHT}h{COLUMNS - 1}v-1h1"


def test_the_line_begins_where_the_history_does() -> None:
    half = COLUMNS // 2
    line = path(Stretch(points=[point(SPAN / 2, 5), point(SPAN / 4, 10)], before=None), 10, NOW)
    assert line.startswith(f"M{half - 1} 5h")
    assert line.endswith(f"v-5h{COLUMNS - 22}")


def test_the_line_is_cut_where_nothing_was_recorded() -> None:
    later = replace(point(SPAN / 2, 10), gap=True)
    line = path(Stretch(points=[point(SPAN * 0.9, 5), later], before=point(SPAN + 60, 5)), 10, NOW)
    assert line == f"M0 5h2M14 0h{COLUMNS - 14}"


def test_many_histories_are_read_at_once_and_seldom(store: Store) -> None:
    queues = [store.create_queue(f"q{n}") for n in range(5)]
    recorder = store.recorder()
    queues[0].push(b"x", priority=1)
    recorder.look()
    recorder.flush()
    depths: dict[int, int | None] = {queue.id: 1 for queue in queues}
    sparks = Sparks()
    now = datetime.now(UTC).timestamp() + 120
    first = sparks.of(store, depths, now)
    before = store.context.kv.reads()
    assert sparks.of(store, depths, now + 30) == first
    assert store.context.kv.reads() == before
    sparks.of(store, depths, now + 61)
    assert store.context.kv.reads() > before


def test_lines_are_read_anew_after_the_clock_was_set_back(store: Store) -> None:
    queue, sparks = store.create_queue("jobs"), Sparks()
    sparks.of(store, {queue.id: 1}, NOW)
    before = store.context.kv.reads()
    sparks.of(store, {queue.id: 1}, NOW - 3_600)
    assert store.context.kv.reads() > before
