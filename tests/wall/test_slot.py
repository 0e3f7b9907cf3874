"""A screen's place in the stream: nothing twice, and all that differs, whether it is the numbers or the picture."""

import json
from datetime import UTC, datetime
from typing import Any

from pqadmin.accounts.scope import ALL
from pqadmin.live import wire
from pqadmin.live.board.cuts import Cut
from pqadmin.live.frames import Tick
from pqadmin.live.monitor import Monitor
from pqadmin.wall.layout import lay_out
from pqadmin.wall.picture import Counts, Picture
from pqadmin.wall.slot import WallSlot
from pqadmin.wall.specs import Part, Turn
from queues import Store

IDS = frozenset({1, 2})
PART = Part(name="Hall", globs=("*",), order="worst", density="far")


def picture(*ids: int, trouble: int = 0) -> Picture:
    return Picture(
        part=PART,
        turn=Turn(index=0, of=1, until=None),
        counts=Counts(queues=len(ids), critical=0, warning=trouble, unknown=0, unread=0, ready=0),
        ids=ids,
        rest=None,
        layout=lay_out(len(ids), density="far", stress=False),
        revision="a",
        rows=(),
        as_of=datetime.fromtimestamp(0, UTC),
    )


def tick(monitor: Monitor, number: int, ready: int) -> Tick:
    monitor.refresh()
    (row,) = monitor.overview(ALL).rows
    rows = {i: json.dumps(json.loads(wire.row(row)) | {"id": str(i), "ready": ready}) for i in IDS}
    cut = Cut(version=number, at=number, covers=IDS, rows=rows, ends={}, names={i: f"q{i}" for i in IDS})
    return Tick(number=number, cuts=(cut,), sums={}, changed={})


def take(slot: WallSlot, at: Tick) -> Any:
    message = slot.take(at, now=0.0, wall=1_800_000_000.0)
    if message is None:
        return None
    frame = json.loads(b"".join(message))
    slot.ack(frame["seq"])
    return frame


def test_the_same_moment_is_told_once_and_again_where_the_picture_or_the_screen_wants_it(
    store: Store, monitor: Monitor
) -> None:
    store.create_queue("jobs")
    one, two, three = tick(monitor, 1, 5), tick(monitor, 2, 5), tick(monitor, 3, 6)
    slot = WallSlot(0.0, ALL)
    slot.show_picture(picture(1, 2))
    assert take(slot, one)["full"]
    assert take(slot, one) is None
    assert take(slot, two) is None, "another moment, the same numbers"

    slot.show_picture(picture(2, 1, trouble=1))
    frame = take(slot, two)
    assert (frame["full"], frame["rows"], frame["order"]) == (False, [], ["2", "1"])

    slot.resync()
    frame = take(slot, two)
    assert (frame["full"], len(frame["rows"])) == (True, 2)

    slot.fail(100.0, "gone")
    assert take(slot, two)["t"] == "store"
    slot.recover()
    assert take(slot, two)["full"], "whole after trouble"
    assert [row["ready"] for row in take(slot, three)["rows"]] == [6, 6]
