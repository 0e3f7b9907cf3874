"""One socket's error ends that socket: thirty other sockets go on, and rights are still checked."""

import asyncio
from collections.abc import Collection

import pytest
from django.contrib.auth.models import User

import pqadmin.asgi  # noqa: F401 # sets logging up, which `caplog` must come after
from pqadmin.accounts.scope import Scope
from pqadmin.live.board.overviews import EVERYTHING
from pqadmin.live.guard import SIGNED_OUT
from pqadmin.live.monitor import Monitor
from pqadmin.live.sockets import BROKEN, Pass
from pqadmin.live.subscription import Subscription
from queues import Store
from tests.live.conftest import PATIENCE, Join


@pytest.fixture
def engine() -> str:
    """One engine: how sockets end has nothing to do with it."""
    return "embedded"


class Faulty:
    """A socket whose every frame fails, as one that encodes half a character did."""

    def __init__(self) -> None:
        self.subscription = Subscription(0.0)
        self.badge = Pass(scope=EVERYTHING, session_key="faulty", user_id=0)
        self.ended: list[int] = []
        self.over = asyncio.Event()
        #: One of its own, as the log tells each kind once a minute.
        self.error = type("HalfACharacter", (ValueError,), {})("half a character")

    def wake(self) -> None:
        raise self.error

    def admit(self, badge: Pass) -> None:
        raise self.error

    def end(self, code: int) -> None:
        self.ended.append(code)
        self.over.set()


class Unlimited(Faulty):
    """A faulty socket that cannot even be closed."""

    def end(self, code: int) -> None:
        super().end(code)
        raise RuntimeError("no way out")


async def test_one_hostile_socket_among_thirty(
    store: Store, monitor: Monitor, join: Join, caplog: pytest.LogCaptureFixture
) -> None:
    queue = await asyncio.to_thread(store.create_queue, "jobs")
    viewers = [await join() for _ in range(30)]
    for viewer in viewers:
        await viewer.watch(queue.id)
    faulty, hopeless = Faulty(), Unlimited()
    monitor.hub.join(faulty)
    monitor.hub.join(hopeless)
    try:
        for depth in (1, 2, 3):
            await asyncio.to_thread(queue.push, b"x", priority=1)
            for viewer in viewers:
                await viewer.frame(lambda frame: any(row["ready"] == depth for row in frame["rows"]))  # noqa: B023
        async with asyncio.timeout(PATIENCE):
            await faulty.over.wait()
        assert BROKEN in faulty.ended
        told = [record for record in caplog.records if "A live socket was closed" in record.getMessage()]
        assert 1 <= len(told) <= 3, "once for each reason, not each time"
        assert any("HalfACharacter: half a character" in record.getMessage() for record in told)
        await asyncio.to_thread(lambda: User.objects.filter(username="vera").update(is_active=False))
        assert [await viewer.closed() for viewer in viewers] == [SIGNED_OUT] * 30
    finally:
        monitor.hub.leave(faulty)
        monitor.hub.leave(hopeless)


async def test_rights_are_checked_again_after_a_check_that_failed(
    monitor: Monitor, join: Join, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A record that cannot be read must not keep the door open for good."""
    from pqadmin.live import guard

    viewer = await join()
    real, failed = guard.stored, asyncio.Event()
    loop = asyncio.get_running_loop()

    def fails_once(badges: Collection[Pass]) -> dict[Pass, Scope | int]:
        if not failed.is_set():
            loop.call_soon_threadsafe(failed.set)
            raise type("Damaged", (ValueError,), {})("a damaged session")
        return real(badges)

    monkeypatch.setattr(guard, "stored", fails_once)
    async with asyncio.timeout(PATIENCE):
        await failed.wait()
    await asyncio.to_thread(lambda: User.objects.filter(username="vera").update(is_active=False))
    assert await viewer.closed() == SIGNED_OUT
    assert "a damaged session" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        '{"t":"watch","topic":"overview","queues":[],"groups":["\\ud800"]}',
        '{"t":"watch","topic":"queue:\\udfff"}',
        '{"t":"watch","topic":"overview","queues":[],"more":{"\\udc80":1}}',
        '{"t":"\ud800"}',
    ],
)
async def test_half_a_character_is_refused_wherever_it_is(join: Join, text: str) -> None:
    viewer = await join()
    await viewer.raw(text)
    answer = await viewer.until(lambda message: message["t"] == "error")
    assert (answer["code"], answer["fatal"]) == ("bad-text", False)
    await viewer.raw('{"t":"watch","topic":"overview","queues":[],"groups":["\\ud83d\\ude00"]}')
    assert (await viewer.frame())["full"]
