"""What is kept up to date by what changed says at every moment what is worked out from all rows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.overview.filters import parse
from pqadmin.dashboard.overview.ordering import Order, arrange
from pqadmin.live.board.board import Board
from pqadmin.live.board.health import Problem, Rules, State
from pqadmin.live.board.overviews import EVERYTHING, Overview
from pqadmin.live.board.sums import groups_of, total_of
from queues.status.status import QueueStatus, Snapshot, Totals, unreadable_status

BEGAN = datetime(2026, 11, 22, 8, tzinfo=UTC)
ORDERS = [Order(), Order(grouping="name", sort="ready", descending=True), Order(grouping="group"), Order(sort="oldest")]
FILTERS = ["", "problem:stalled", "ready>5 -eu", "age>30s"]
SCOPES = [EVERYTHING, Scope.of_globs(["eu:*"])]


def status(queue_id: int, name: str, change: int, at: datetime, random: Random) -> QueueStatus:
    """Return some status."""
    if random.random() < 0.05:
        return unreadable_status(queue_id, name, change, "damaged")
    ready = random.choice([0, 0, 3, 12, 900])
    return replace(
        unreadable_status(queue_id, name, change, ""),
        totals=Totals(ready=ready, delayed=random.randrange(3), leased=0, dead=random.choice([0, 0, 4]), traffic={}),
        arrived=change * 10 + ready,
        left=change * 10,
        oldest=at - timedelta(seconds=random.randrange(100)) if ready else None,
        next_due=at + timedelta(seconds=random.randrange(100)) if random.random() < 0.3 else None,
    )


def look(overview: Overview) -> list[list[str]]:
    """Return the names that each order and filter shows."""
    shown = []
    for order in ORDERS:
        for text in FILTERS:
            listing = arrange(overview, order=order, wanted=parse(text), after="")
            shown.append([row.status.name for group in listing.groups for row in group.rows])
    return shown


@pytest.mark.parametrize("seed", range(5))
def test_an_overview_that_follows_another_is_as_one_worked_out_anew(seed: int) -> None:
    random = Random(seed)
    board = Board(Rules(stalled_after=20.0, old_after=60.0, growing_after=5.0))
    names: dict[str, int] = {}
    changes: dict[int, int] = {}
    now, directory = 0.0, 0
    for turn in range(40):
        now += random.choice([0.2, 1.0, 7.0])
        at = BEGAN + timedelta(seconds=now)
        if turn == 0 or random.random() < 0.2:
            directory += 1
            if len(names) > 20:
                for gone in random.sample(sorted(names), 3):
                    del names[gone]
            for _ in range(30 if turn == 0 else 4):
                names[f"{random.choice(['eu', 'us'])}:{random.choice('abc')}:{random.randrange(10_000)}"] = (
                    directory * 100 + _
                )
            for number, renamed in enumerate(random.sample(sorted(names), 2)):
                queue_id = names.pop(renamed)
                names[random.choice(["eu:new", "us:new", f"{renamed}z"])] = queue_id
                if random.random() < 0.5:
                    names[renamed] = directory * 100 + 50 + number
            names = dict(sorted(names.items()))
            board.put_directory(names, directory)
        by_id = {queue_id: name for name, queue_id in names.items()}
        read = [queue_id for queue_id in by_id if queue_id not in changes or random.random() < 0.2]
        for queue_id in read:
            changes[queue_id] = changes.get(queue_id, 0) + random.randrange(2)
        known = board.previous(read)
        statuses = {
            queue_id: known.queues[queue_id]
            if known.changes.get(queue_id) == changes[queue_id]
            else status(queue_id, by_id[queue_id], changes[queue_id], at, random)
            for queue_id in read
        }
        board.apply(
            Snapshot(
                version=turn,
                at=at,
                directory_change=directory,
                queues=statuses,
                changes={queue_id: changes[queue_id] for queue_id in read},
            ),
            now,
        )
        for scope in SCOPES:
            # What takes long waits for its next turn: asked a while later it does not.
            overview = board.overview(now + 6.0, at, scope)
            seen = [queue_id for name, queue_id in names.items() if scope.sees(name)]
            rows = [
                row
                for queue_id in seen
                if (row := board.row(queue_id, now + 6.0)) is not None and row.status.name == by_id[queue_id]
            ]
            assert list(overview.rows) == rows
            expected = total_of(rows, queues=len(seen), as_of=overview.summary.as_of)
            assert overview.summary == expected
            assert {label: replace(one, as_of=at) for label, one in overview.groups.items()} == {
                label: replace(one, as_of=at) for label, one in groups_of(rows, now=at).items()
            }
            alone = Overview(snapshot_version=0, at=overview.at, rows=rows, summary=expected)
            assert look(overview) == look(alone)
        now += 6.0


def test_a_row_changes_when_its_time_has_come_though_no_person_touches_the_queue() -> None:
    board = Board(Rules(stalled_after=20.0, old_after=60.0, dead_from=0))
    board.put_directory({"jobs": 1}, 1)
    at = BEGAN
    jobs = replace(
        unreadable_status(1, "jobs", 1, ""),
        totals=Totals(ready=1, delayed=0, leased=0, dead=0, traffic={}),
        arrived=1,
        oldest=at - timedelta(seconds=15),
    )
    board.apply(Snapshot(version=1, at=at, directory_change=1, queues={1: jobs}, changes={1: 1}), 0.0)

    def now(seconds: float) -> tuple[State, tuple[Problem, ...]]:
        (row,) = board.overview(seconds, at).rows
        return row.state, row.problems

    assert now(0.0) == (State.OK, ())
    assert now(5.0) == (State.OK, ())
    before = board.overview(18.0, at)
    assert board.row(1, 19.0) is before.rows[0], "nothing differs: it is the very same row"
    assert now(20.5) == (State.STALLED, (Problem.STALLED,))
    assert now(44.0) == (State.STALLED, (Problem.STALLED,))
    assert now(45.5) == (State.STALLED, (Problem.STALLED, Problem.OLD))


def test_rates_that_come_and_go_leave_nothing_in_the_sum() -> None:
    random = Random(1)
    board = Board()
    board.put_directory({f"q{number}": number for number in range(1, 40)}, 1)
    for turn in range(30):
        queues = {
            number: replace(
                unreadable_status(number, f"q{number}", turn, ""),
                arrived=turn * random.randrange(1, 3) * 7 + 1_000 * turn,
                left=turn,
            )
            for number in range(1, 40)
        }
        changes = dict.fromkeys(queues, turn)
        board.apply(Snapshot(version=turn, at=BEGAN, directory_change=1, queues=queues, changes=changes), turn * 1.1)
        board.overview(turn * 1.1, BEGAN)
    assert (board.overview(34.0, BEGAN).summary.rate_in or 0) > 0
    quiet = board.overview(60.0, BEGAN).summary
    assert (quiet.rate_in, quiet.rate_out) == (0.0, 0.0)
