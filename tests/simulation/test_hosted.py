"""Processes that share a store, one of which hosts it: nothing lost, nothing twice, linearizable.

`PQ_HOSTED=5000` runs more schedules than `make test` does; `PQ_SCHEDULE_SEED=17` runs the one of that seed again.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from queues.kv.embedded import host_client
from queues.kv.embedded.host import Host, Request
from queues.kv.embedded.host_client import Connection
from queues.kv.embedded.transaction import Batch
from queues.kv.port import Ticket
from tests.simulation.hosted import Hosted
from tests.simulation.schedules import Tally, seeds

#: What schedules are for, beside kills.
TROUBLE = (
    "a caller waits in vain",
    "a process is suspended",
    "the machine's clock jumps",
    "a reply is cut short",
    "a message is cut off",
    "a commit fails",
    "executed for another process",
    "found in the socket",
    "found in a record",
    "stored by itself",
    "executed anew",
    "left to another process",
)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What hosts and callers did."""
    seen: Counter[str] = Counter()

    def counting(owner: Any, name: str, what: str, number: Callable[..., int]) -> None:
        original = getattr(owner, name)

        def call(*arguments: Any) -> Any:
            answer = original(*arguments)
            seen[what] += number(answer, *arguments)
            return answer

        monkeypatch.setattr(owner, name, call)

    def executed(_: None, host: Host, batch: Batch, done: Sequence[Ticket]) -> int:
        return [type(ticket) is Request for ticket in done].count(True)

    counting(Host, "note", "executed for another process", executed)

    def stored(_: None, host: Host, batch: Batch, done: Sequence[Ticket]) -> int:
        return [bool(message.stored) for message in host.unsent].count(True)

    counting(Host, "note", "stored by itself", stored)
    counting(Host, "is_busy", "left to another process", lambda busy, host: busy)
    counting(Connection, "rest", "found in the socket", lambda answers, connection: bool(answers))
    counting(host_client, "read_answers", "found in a record", lambda answers, *_: bool(answers))
    counting(Connection, "settle", "executed anew", lambda _, connection, txn, at, ticket: not ticket.answered)
    return seen


@pytest.mark.slow
def test_hosted_requests_lose_and_double_nothing(seen: Counter[str], capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    for seed in seeds(75, "PQ_HOSTED"):
        schedule = Hosted(seed)
        schedule.run(tally)
        seen += schedule.seen
    with capsys.disabled():
        print(f"\nhosted: {tally}\n{dict(seen)}")
    if tally.schedules >= 75:
        assert [what for what in TROUBLE if not seen[what]] == []
        assert tally.kills


@pytest.mark.parametrize("seed", [3, 8])
def test_the_same_seed_gives_the_same_history(seed: int) -> None:
    def run() -> tuple[str, Counter[str]]:
        schedule = Hosted(seed)
        schedule.run(Tally())
        return str(schedule.history), schedule.seen

    assert run() == run()
