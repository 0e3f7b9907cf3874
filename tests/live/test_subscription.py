"""A subscription never holds more than one screen, and the newest state wins."""

import json
from typing import Any

from pqadmin.live.board.consistent_cuts import Cut
from pqadmin.live.board.overviews import EVERYTHING
from pqadmin.live.frame_json import Standing
from pqadmin.live.requests import MAX_SCREEN, Watch
from pqadmin.live.subscription import BEAT, Subscription
from pqadmin.live.ticks import Dated, Sum, Tick

IDS = frozenset({1, 2, 3})

STANDING = Standing(ready=1, level="ok")


def tick(
    number: int,
    *changed: int,
    gone: frozenset[int] = frozenset(),
    ids: frozenset[int] = IDS,
    total_since: int = 0,
) -> Tick:
    """Return the tick of this number, in which these queues changed; the rest did with the first."""
    rows = {i: json.dumps({"id": str(i), "ready": number}) for i in ids - gone}
    names = {i: f"q{i}" for i in ids}
    cut = Cut(version=number, at=number, covers=ids, rows=rows, ends={}, names=names)
    total = Sum(total=Dated("{}", total_since), groups={}, standing=STANDING)
    since = {i: number if i in changed else 0 for i in ids}
    return Tick(number=number, cuts=(cut,), sums={EVERYTHING: total}, changed=since)


def overview(screen: Subscription, ids: frozenset[int] = IDS, *, grow: bool = False) -> None:
    screen.watch(Watch(topic="overview", queues=tuple(map(str, ids)), grow=grow), ids)


def take(screen: Subscription, at: Tick | None, now: float = 0.0) -> dict[str, Any] | None:
    message = screen.take(at, now=now, wall=1_800_000_000.0)
    return None if message is None else json.loads(b"".join(message))


def test_nothing_is_sent_before_the_whole_screen_was_read() -> None:
    screen = Subscription(0.0)
    overview(screen, frozenset({1, 9}))
    assert take(screen, None) is None
    assert take(screen, tick(1)) is None
    assert take(screen, tick(2, ids=IDS | {9})) is not None


def test_a_beat_comes_when_nothing_else_does() -> None:
    screen = Subscription(0.0)
    overview(screen)
    assert take(screen, tick(1), now=1.0) is not None
    screen.ack(1)
    assert screen.beat(now=1.0 + BEAT / 2, wall=1.0, checked=1.0, version=1, standing=lambda: STANDING, as_of=1) is None
    assert screen.beat(now=1.0 + BEAT, wall=1.0, checked=1.0, version=1, standing=lambda: STANDING, as_of=1) is not None


def test_a_hidden_tab_gets_no_frames_but_a_beat_every_ten_seconds_until_it_is_shown() -> None:
    screen = Subscription(0.0)
    overview(screen)
    screen.show(False)
    assert screen.shown.ids == frozenset(), "nothing is read for it"
    assert take(screen, tick(1, 1)) is None
    assert screen.beat(now=9.9, wall=1.0, checked=1.0, version=1, standing=lambda: STANDING, as_of=1) is None
    assert screen.beat(now=10.0, wall=1.0, checked=1.0, version=1, standing=lambda: STANDING, as_of=1) is not None
    screen.show(True)
    frame = take(screen, tick(2))
    assert frame["full"]


def test_a_screen_grows_to_its_limit_and_no_further() -> None:
    screen = Subscription(0.0)
    overview(screen, grow=True)
    screen.add(set(range(10_000)))
    assert len(screen.ids) == MAX_SCREEN


def test_gone_queues_take_no_room_from_new_ones() -> None:
    screen = Subscription(0.0)
    old = frozenset(range(MAX_SCREEN))
    overview(screen, old, grow=True)
    take(screen, tick(1, ids=old, gone=old - {7}))
    screen.ack(1)
    screen.add({1_000, 1_001})
    assert {7, 1_000, 1_001} <= screen.ids
    assert len(screen.ids) <= MAX_SCREEN
    frame = take(screen, tick(2, ids=screen.ids, gone=old - {7}))
    assert [row["id"] for row in frame["rows"]] == ["1000", "1001"]


def test_a_queue_that_is_back_takes_its_room_again() -> None:
    screen = Subscription(0.0)
    old = frozenset(range(MAX_SCREEN))
    overview(screen, old, grow=True)
    take(screen, tick(1, ids=old, gone=frozenset({2})))
    screen.ack(1)
    take(screen, tick(2, 2, ids=old))
    screen.add({1_000})
    assert screen.ids == old


def test_trouble_is_told_with_every_beat_and_healed_by_a_whole_frame() -> None:
    screen = Subscription(0.0)
    overview(screen)
    take(screen, tick(1))
    screen.ack(1)
    screen.fail(100.0, "gone")
    told = take(screen, tick(1))
    assert told["t"] == "store"
    screen.ack(2)
    screen.fail(100.0, "gone")
    assert take(screen, tick(1)) is None
    again = take(screen, tick(1), now=BEAT)
    assert again is not None, "silence would be taken for a dead connection"
    assert (again["t"], again["since"], again["seq"]) == ("store", told["since"], 3)
    screen.ack(3)
    assert take(screen, tick(1), now=BEAT) is None
    screen.recover()
    frame = take(screen, tick(2))
    assert frame["full"]
