"""What the hub keeps while there is no socket."""

import asyncio

from pqadmin.accounts.scope import Scope
from pqadmin.live.board.overviews import EVERYTHING
from pqadmin.live.hub import Hub
from pqadmin.live.requests import Watch
from pqadmin.live.sockets import Pass
from pqadmin.live.subscription import Subscription
from pqadmin.live.ticks import Tick


class Screen:
    """A socket with a screen that grows."""

    def __init__(self, scope: Scope = EVERYTHING) -> None:
        self.subscription = Subscription(0.0, scope)
        self.badge = Pass(scope=scope)
        self.woken = asyncio.Event()
        self.subscription.watch(Watch(topic="overview", queues=("1",), grow=True), frozenset({1}))

    def wake(self) -> None:
        """Note it."""
        self.woken.set()

    def admit(self, badge: Pass) -> None:
        """Do nothing."""

    def end(self, code: int) -> None:
        """Do nothing."""


def names(number: int, first: int) -> Tick:
    return Tick(number=number, cuts=(), sums={}, changed={}, new={n: f"q{n}" for n in range(first, first + 50)})


def nothing() -> None:
    """Do nothing."""


async def test_queues_that_came_without_a_socket_do_not_land_on_the_first_screen() -> None:
    hub = Hub(on_screens=nothing, on_round=nothing)
    for number in range(10):
        hub.publish(names(number, 100 + 50 * number))
    screen = Screen()
    hub.join(screen)
    hub.publish(Tick(number=20, cuts=(), sums={}, changed={}, new={2: "two"}))
    await screen.woken.wait()
    assert screen.subscription.ids == {1, 2}
    hub.leave(screen)
    for number in range(30, 40):
        hub.publish(names(number, 100 + 50 * number))
    late = Screen()
    hub.join(late)
    hub.publish(Tick(number=50, cuts=(), sums={}, changed={}, new={3: "three"}))
    await late.woken.wait()
    assert late.subscription.ids == {1, 3}
    hub.leave(late)


def test_a_loop_that_was_closed_leaves_nothing_to_the_next_one() -> None:
    hub, screens = Hub(on_screens=nothing, on_round=nothing), list[Screen]()

    async def join() -> None:
        screens.append(Screen())
        hub.join(screens[-1])

    async def is_told() -> None:
        await join()
        hub.publish(Tick(number=50, cuts=(), sums={}, changed={}, new={3: "three"}))
        await screens[-1].woken.wait()
        hub.leave(screens[-1])

    asyncio.run(join())
    hub.publish(names(1, 100))
    asyncio.run(is_told())
    assert screens[-1].subscription.ids == {1, 3}
