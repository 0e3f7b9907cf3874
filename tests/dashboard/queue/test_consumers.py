"""The consumers of a queue on its page: each live process, or why there is none and what to do."""

import html
import re
from collections.abc import Callable

import pytest

from pqadmin.accounts.roles import Role
from queues import Queue, Store
from queues.consumers.presence import Presence
from queues.operations.pop import pop_request
from queues.serving.background import BackgroundThreads
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen


def another(store: Store, ahead: list[float]) -> Presence:
    """Return the heartbeats of another process, whose clock a test sets ahead."""
    context = store.context
    return Presence(context.kv, context.keyspace, lambda: context.clock() + ahead[0], BackgroundThreads())


def panel(screen: Screen) -> str:
    """Return the part of a page that tells of consumers."""
    return screen.html.partition('id="consumers"')[2].partition("</section>")[0]


def told(screen: Screen) -> str:
    """Return the code that the panel has for there being none."""
    return panel(screen).partition('data-consumers="')[2].partition('"')[0]


def test_a_process_is_shown_with_what_it_holds(operator: Desk, store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", 1)] * 3)
    jobs.lease_many(2, seconds=60, worker="press <b>7</b>\u202e")
    store.context.presence.beat()
    screen = operator.open("/queues/jobs/")
    assert told(screen) == ""
    (consumer,) = jobs.consumers().live
    shown = panel(screen).partition("<template>")[0]
    assert f'data-consumer="{consumer.id}"' in shown
    assert "press &lt;b&gt;7&lt;/b&gt;" in shown
    assert "\u202e" not in screen.html
    assert f'data-part="pid">{consumer.pid}<' in shown
    assert re.search(r'data-part="holds"[^>]*>2<', shown)


@pytest.mark.parametrize(("worker", "listed"), [("press 7", 2), ("press:7", 2), ("\u202epress", 3), (None, 2), ("", 3)])
def test_what_a_process_holds_is_one_link_away(
    operator: Desk, store: Store, jobs: Queue, worker: str | None, listed: int
) -> None:
    jobs.push_many([(b"x", 1)] * 4)
    jobs.lease(seconds=60, worker=f"{worker}2")
    jobs.lease_many(2, seconds=60, worker=worker)
    store.context.presence.beat()
    shown = panel(operator.open("/queues/jobs/")).partition("<template>")[0]
    (address,) = re.findall(r'data-part="holds"\s+href="([^"]+)#items">3<', shown)
    rows = operator.open(f"/queues/jobs/{html.unescape(address)}").html
    assert len(re.findall(r'<tr data-id="', rows)) == listed
    said = operator.open(f"/queues/jobs/bulk/{html.unescape(address)}&act=release").text
    assert ("held by “" in said) == (listed == 2)


def test_without_any_the_page_says_why(operator: Desk, store: Store, jobs: Queue) -> None:
    assert told(operator.open("/queues/jobs/")) == "unknown"
    ahead = [-61.0]
    closing, idle = another(store, [0.0]), another(store, ahead)
    closing.of(jobs.id).took(1)
    closing.beat()
    closing.stop()
    screen = operator.open("/queues/jobs/")
    assert told(screen) == "closed"
    assert "Start a worker" in screen.text
    idle.of(jobs.id).took(1)
    idle.beat()
    ahead[0] = 0.0
    idle.beat()
    assert told(operator.open("/queues/jobs/")) == "idle"


def test_a_process_without_heartbeats_is_lost(operator: Desk, store: Store, jobs: Queue) -> None:
    killed = another(store, [-30.0])
    killed.of(jobs.id).took(1)
    killed.beat()
    screen = operator.open("/queues/jobs/")
    assert told(screen) == "lost"
    assert "Look at its host" in screen.text


def test_programs_that_do_not_tell_are_no_absence(operator: Desk, store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", 1)] * 40)
    closing = another(store, [0.0])
    closing.of(jobs.id).took(1)
    closing.beat()
    closing.stop()
    count = [0.0]
    now = store.now().timestamp()
    clock = [now]
    recorder = Store(store.context.kv, url=store.url, keyspace=store.context.keyspace, clock=lambda: clock[0]).recorder(
        count=lambda: count[0]
    )
    for _ in range(9):
        clock[0] += 12
        count[0] += 12
        jobs.opened.send(pop_request(jobs.opened, 1, "min", None))
        recorder.look()
        recorder.flush()
    screen = operator.open("/queues/jobs/")
    assert told(screen) == "untold"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_all_that_may_read_the_queue_see_them(desk: Callable[..., Desk], store: Store, jobs: Queue, role: Role) -> None:
    jobs.pop_min()
    store.context.presence.beat()
    assert "data-consumer=" in panel(desk(role).open("/queues/jobs/")).partition("<template>")[0]


def test_the_panel_of_consumers_is_chinese(chinese_admin: Desk, store: Store) -> None:
    store.create_queue("jobs")
    assert "还没有消费者上报过" in chinese_admin.open("/queues/jobs/")
