"""What a screen shows: the worst first, nothing in trouble left out for the order, the rest added up honestly."""

import pytest

from pqadmin.accounts.scope import ALL, Scope
from pqadmin.dashboard.overview.ordering import Order, arrange
from pqadmin.live.board.filters import parse
from pqadmin.live.monitor import Monitor
from pqadmin.wall.picture import Picture, choose, cut
from pqadmin.wall.specs import Part, Spec
from queues import Store, Transaction

DAY = 86_400


def spec(*globs: str, order: str = "worst", density: str = "far", parts: tuple[Part, ...] = ()) -> Spec:
    own = Part(name="Hall", globs=globs or ("*",), order=order, density=density)
    return Spec(board=1, slug="hall", name="Hall", theme="dark", language="", seconds=30, parts=(own, *parts))


def chosen(monitor: Monitor, wanted: Spec, viewer: Scope = ALL, now: float = 1_800_000_000.0) -> Picture:
    monitor.refresh()
    return choose(wanted, monitor, viewer=viewer, now=now)


def names(found: Picture) -> list[str]:
    return [row.status.name for row in found.rows]


@pytest.fixture
def thirty(store: Store) -> Store:
    for n in range(30):
        store.create_queue(f"jobs:{n:02}").push_many([(b"v", 1)] * n)
    store.queue("jobs:03").pause(reason="ledger closing", by="ops")
    return store


def test_the_more_urgent_comes_first_and_the_rest_is_added_up(thirty: Store, monitor: Monitor) -> None:
    found = chosen(monitor, spec())
    assert names(found)[0] == "jobs:03", "paused comes before what is well"
    assert names(found)[1:] == [f"jobs:{n}" for n in range(10, 20)], "of equals the deepest, then by name"
    rest = found.rest
    assert (len(found.rows), rest.queues, rest.worst) == (11, 19, "ok")
    shown = sum(row.ready or 0 for row in found.rows)
    assert rest.ready + shown == sum(range(30))
    assert found.counts.queues == 30
    assert sum(found.layout.wide) == 12


def test_what_fits_has_a_tile_each_and_nothing_is_rolled_up(thirty: Store, monitor: Monitor) -> None:
    found = chosen(monitor, spec("jobs:0?", "jobs:1[x", "none:*"))
    assert len(found.rows) == 10
    assert found.rest is None


def kill(store: Store, name: str) -> None:
    """Let an item of a queue die."""
    queue = store.queue(name)
    queue.configure(max_attempts=1)
    queue.push(b"x", priority=1)
    queue.release(queue.lease(seconds=60))


def test_of_those_in_equal_trouble_the_deepest_come_first(thirty: Store, monitor: Monitor) -> None:
    for n in (0, 5, 20, 29):
        kill(thirty, f"jobs:{n:02}")
    assert names(chosen(monitor, spec()))[:4] == ["jobs:20", "jobs:29", "jobs:05", "jobs:00"]


def test_queues_in_trouble_are_in_the_order_of_the_overview(store: Store, monitor: Monitor) -> None:
    for name, depth in (("drifted", 500), ("dead", 20), ("well", 5)):
        store.create_queue(name).push_many([(b"v", 1)] * depth)
    kill(store, "dead")
    keys = store.context.keyspace.queue(store.queue("drifted").id)

    def drift(tr: Transaction) -> None:
        tr.set(keys.drift, (1).to_bytes(8, "little"))
        tr.add(keys.change, 1)

    store.transact(drift)
    found = chosen(monitor, spec())
    seen = arrange(monitor.overview(), order=Order(), wanted=parse(""), after="")
    assert names(found) == [row.status.name for group in seen.groups for row in group.rows]
    assert names(found) == ["dead", "drifted", "well"], "by the reason before the depth"


@pytest.mark.parametrize("order", ["name", "depth"])
def test_no_order_hides_what_is_in_trouble(order: str, thirty: Store, monitor: Monitor) -> None:
    for name in ("jobs:02", "jobs:29"):
        kill(thirty, name)
    found = chosen(monitor, spec(order=order))
    assert {"jobs:02", "jobs:03", "jobs:29"} <= set(names(found))
    assert (found.rest.critical, found.rest.warning) == (0, 0)
    assert found.counts.warning == 3
    key = (lambda row: row.status.name) if order == "name" else (lambda row: -(row.ready or 0))
    assert list(found.rows) == sorted(found.rows, key=key)


def test_more_in_trouble_than_there_is_room_for_is_told_with_the_rest(thirty: Store, monitor: Monitor) -> None:
    for n in {*range(16)} - {3}:  # which is paused
        kill(thirty, f"jobs:{n:02}")
    found = chosen(monitor, spec())
    assert {row.level for row in found.rows} == {"warning"}
    rest, counts = found.rest, found.counts
    assert (counts.worst, counts.warning) == ("warning", 16)
    assert rest.warning == 16 - len(found.rows) > 0


def test_a_viewer_sees_his_part_of_the_board_only(thirty: Store, monitor: Monitor) -> None:
    found = chosen(monitor, spec("jobs:1*"), Scope.of_globs(["jobs:?2"]))
    assert names(found) == ["jobs:12"]
    assert found.counts.queues == 1


def test_hostile_names_match_as_text(store: Store, monitor: Monitor) -> None:
    for name in ("a.b", "axb", "قائمة:انتظار", "n" * 200):
        store.create_queue(name)
    assert names(chosen(monitor, spec("a.b"))) == ["a.b"]
    assert names(chosen(monitor, spec("قائمة:*"))) == ["قائمة:انتظار"]
    assert len(names(chosen(monitor, spec("n" * 190 + "*")))) == 1


def test_the_wall_has_the_levels_of_the_overview(thirty: Store, monitor: Monitor) -> None:
    kill(thirty, "jobs:02")
    rows = {row.status.name: (row.level, row.mark) for row in chosen(monitor, spec("jobs:0?")).rows}
    assert rows["jobs:03"] == ("warning", "paused")
    assert rows["jobs:02"] == ("warning", "")
    assert rows["jobs:00"] == ("ok", "empty")
    shown = {row.status.name: (row.level, row.mark) for row in monitor.overview().rows}
    assert rows == {name: shown[name] for name in rows}


def test_turns_go_by_the_clock_for_ninety_days() -> None:
    other = Part(name="Mail", globs=("mail:*",), order="name", density="near")
    wanted = spec(parts=(other, other))
    start = 1_800_000_000.0
    seen = [0, 0, 0]
    for step in range(0, 90 * DAY, 977):
        now = start + step
        turn = wanted.turn(now)
        assert 0 < turn.until - now <= wanted.seconds
        assert wanted.turn(turn.until).index == (turn.index + 1) % 3, "nothing is skipped or shown twice"
        seen[turn.index] += 1
    assert max(seen) - min(seen) < 0.05 * sum(seen)
    assert spec().turn(start).until is None


def test_queues_that_were_not_read_yet_count_only_for_people_that_see_them(thirty: Store, monitor: Monitor) -> None:
    monitor.refresh()
    fresh = {f"new:{n}": 9_000 + n for n in range(5)}
    monitor.board.put_directory({**thirty.directory(), **fresh}, monitor.board.directory_change + 1)

    def unread(viewer: Scope) -> tuple[int, int]:
        counts = choose(spec("jobs:*", "new:*"), monitor, viewer=viewer, now=1_800_000_000.0).counts
        return counts.queues, counts.unread

    assert unread(ALL) == (35, 5)
    assert unread(Scope.of_globs(["jobs:0*"])) == (10, 0), "nothing is told of queues that he may not see"
    assert unread(Scope.of_globs(["new:1", "other:*"])) == (1, 1)


def test_screens_of_one_board_share_what_is_worked_out(thirty: Store, monitor: Monitor) -> None:
    first = chosen(monitor, spec())
    again = choose(spec(), monitor, viewer=Scope.of_globs(["*"]), now=1_800_000_000.0)
    assert again.rows is first.rows
    assert choose(spec(), monitor, viewer=Scope.of_globs(["jobs:?2"]), now=1_800_000_000.0).rows != first.rows


def test_a_part_without_any_queue_of_the_viewer_is_not_there(thirty: Store, monitor: Monitor) -> None:
    monitor.refresh()
    other = Part(name="Secret", globs=("jobs:2*",), order="name", density="near")
    wanted = spec("jobs:1*", parts=(other,))

    def left(*globs: str) -> list[str] | None:
        found = cut(wanted, monitor, viewer=Scope.of_globs(globs))
        return None if found is None else [part.name for part in found.parts]

    assert left("*") == ["Hall", "Secret"]
    assert left("jobs:12") == ["Hall"]
    assert left("jobs:22") is None
    assert left("mail:*") is None
