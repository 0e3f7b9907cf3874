"""The people that may open the socket, what it answers to nonsense, and when it is closed."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from pqadmin.accounts.roles import Role, grant
from pqadmin.live.guard import NOT_ALLOWED, SIGNED_OUT
from pqadmin.live.hub import RESTARTING, TOO_SLOW
from pqadmin.live.monitor import Monitor
from pqadmin.live.requests import MAX_MESSAGE
from pqadmin.live.subscription import IN_FLIGHT
from queues import Queue, Store
from tests.live.conftest import Join, Looks, SignIn, Viewer


@pytest.fixture
def engine() -> str:
    """One engine: what a socket admits and answers has nothing to do with it."""
    return "embedded"


async def test_without_a_login_it_stays_shut(monitor: Monitor, transactional_db: None) -> None:
    assert await Viewer().refused()
    assert await Viewer("no-such-session").refused()
    assert len(monitor.hub) == 0


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://evil.example", "testserver"),
        ("http://testserver:9999", "testserver"),
        ("https://testserver", "testserver"),
        ("null", "testserver"),
        ("", "testserver"),
        ("http://evil.example", "evil.example"),
    ],
)
async def test_another_origin_is_refused(origin: str, host: str, sign_in: SignIn, monitor: Monitor) -> None:
    cookie = await asyncio.to_thread(sign_in, "vera")
    assert await Viewer(cookie, origin=origin, host=host).refused()


async def test_the_greeting_names_the_release_that_pages_carry(sign_in: SignIn, monitor: Monitor, store: Store) -> None:
    cookie = await asyncio.to_thread(sign_in, "vera")

    def page(path: str) -> str:
        client = Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = cookie
        return client.get(path).content.decode()

    await asyncio.to_thread(store.create_queue, "jobs")
    viewer = Viewer(cookie)
    greeting = await viewer.open()
    await viewer.leave()
    for path in ("/", "/queues/jobs/"):
        assert f'data-release="{greeting["release"]}"' in await asyncio.to_thread(page, path)


async def test_a_person_without_a_role_is_refused(sign_in: SignIn, monitor: Monitor) -> None:
    cookie = await asyncio.to_thread(sign_in, "vera")
    await asyncio.to_thread(lambda: User.objects.get(username="vera").groups.clear())
    assert await Viewer(cookie).refused() == NOT_ALLOWED


async def test_another_path_is_refused(sign_in: SignIn) -> None:
    viewer = Viewer(await asyncio.to_thread(sign_in, "vera"))
    viewer.socket.scope["path"] = "/live/more"
    assert await viewer.refused()


async def error(viewer: Viewer) -> dict[str, Any]:
    """Return the next error; on a machine that is held up a beat may come first."""
    return await viewer.until(lambda message: message["t"] == "error")


async def test_nonsense_is_answered_and_the_socket_stays_open(jobs: Queue, join: Join) -> None:
    viewer = await join()
    for text, code in [
        ("{", "not-json"),
        ('{"t":"watch","topic":"everything"}', "unknown-topic"),
        ('{"t":"watch","topic":"queue:missing"}', "unknown-queue"),
        ('{"t":"drop"}', "unknown-message"),
        ('{"t":"ack","seq":99}', "bad-ack"),
        ("x" * (MAX_MESSAGE + 1), "too-large"),
    ]:
        await viewer.raw(text)
        answer = await error(viewer)
        assert (answer["code"], answer["fatal"]) == (code, False)
    await viewer.socket.send_to(bytes_data=b"\x00\x01")
    assert (await error(viewer))["code"] == "not-json"
    assert (await viewer.watch(jobs.id))["full"]


async def test_a_client_that_keeps_sending_nonsense_is_disconnected(join: Join) -> None:
    viewer = await join()
    for _ in range(30):
        await viewer.raw("{")
    assert await viewer.closed() == 4400


async def test_a_flood_of_messages_closes_the_socket(join: Join) -> None:
    viewer = await join()
    for _ in range(4_000):  # more than are allowed within a minute
        await viewer.raw('{"t":"resync"}')
    assert await viewer.closed() == 4400


async def test_a_resync_brings_a_whole_frame(jobs: Queue, join: Join) -> None:
    viewer = await join()
    await viewer.watch(jobs.id)
    await viewer.send({"t": "resync"})
    frame = await viewer.frame(lambda frame: frame["full"])
    assert frame["rows"][0]["name"] == "jobs"


async def test_a_socket_that_does_not_acknowledge_gets_two_frames_and_no_more(jobs: Queue, join: Join) -> None:
    slow, quick = await join(), await join()
    slow.auto_ack = False
    await slow.watch(jobs.id)
    await quick.watch(jobs.id)
    for depth in range(1, 15):
        await asyncio.to_thread(jobs.push, b"x", priority=1)
        await quick.frame(lambda frame, depth=depth: any(row["ready"] == depth for row in frame["rows"]))

    while not slow.socket.output_queue.empty():
        await slow.next()
    frames = [message for message in slow.seen if "seq" in message]
    assert len(frames) == IN_FLIGHT

    slow.auto_ack = True
    await slow.send({"t": "ack", "seq": frames[-1]["seq"]})
    frame = await slow.frame()
    assert frame["rows"][0]["ready"] == 14
    assert frame["seq"] == frames[-1]["seq"] + 1


async def test_a_socket_that_never_acknowledges_is_closed(
    store: Store, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pqadmin.live import subscription

    monkeypatch.setattr(subscription, "PATIENCE", 0.2)
    viewer = await join()
    viewer.auto_ack = False
    await viewer.watch(store.create_queue("jobs").id)
    assert await viewer.closed() == TOO_SLOW


async def test_a_hidden_tab_gets_no_frames_until_it_is_shown(jobs: Queue, join: Join, monitor: Monitor) -> None:
    hidden, shown = await join(), await join()
    await hidden.watch(jobs.id)
    await shown.watch(jobs.id)
    await hidden.send({"t": "visible", "visible": False})
    await hidden.raw('{"t":"ack","seq":999}')
    await hidden.until(lambda message: message["t"] == "error")  # and what was said before it is done
    assert frozenset() in [shown.ids for shown in monitor.hub.screens()]

    await asyncio.to_thread(jobs.push, b"x", priority=1)
    await shown.frame(lambda frame: any(row["ready"] == 1 for row in frame["rows"]))
    while not hidden.socket.output_queue.empty():
        assert (await hidden.next())["t"] == "beat"

    await hidden.send({"t": "visible", "visible": True})
    frame = await hidden.frame()
    assert frame["full"]
    assert frame["rows"][0]["ready"] == 1


def end_sessions(_: User) -> None:
    Session.objects.all().delete()


def log_out_elsewhere(user: User) -> None:
    """As the same browser does in another tab: its session is flushed, by the site's own page."""
    client = Client()
    (session,) = (key for key in Session.objects.all() if key.get_decoded().get("_auth_user_id") == str(user.pk))
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    assert client.post("/accounts/logout/").status_code == 302


def deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def change_password(user: User) -> None:
    user.set_password("another horse battery")
    user.save()


def take_role(user: User) -> None:
    user.groups.clear()


def delete(user: User) -> None:
    user.delete()


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (end_sessions, SIGNED_OUT),
        (log_out_elsewhere, SIGNED_OUT),
        (deactivate, SIGNED_OUT),
        (change_password, SIGNED_OUT),
        (take_role, NOT_ALLOWED),
        (delete, SIGNED_OUT),
    ],
)
async def test_a_person_without_the_right_is_disconnected_at_the_next_check(
    act: Callable[[User], None], code: int, store: Store, join: Join, sign_in: SignIn, looks: Looks
) -> None:
    other = Viewer(await asyncio.to_thread(sign_in, "otto"))
    await other.open()
    viewer = await join()
    await viewer.watch(store.create_queue("jobs").id)
    user = await User.objects.aget(username="vera")

    person = user.pk
    await asyncio.to_thread(act, user)
    looks.from_now_on()

    assert await viewer.closed() == code
    assert looks.let_stay(lambda badge: badge.user_id == person) == 0
    if act is not end_sessions:
        await other.watch()
    await other.leave()


@pytest.mark.slow
async def test_a_changed_role_that_still_reads_stays(store: Store, join: Join) -> None:
    viewer = await join()
    await viewer.watch(store.create_queue("jobs").id)
    user = await User.objects.aget(username="vera")
    await asyncio.to_thread(grant, user, Role.OPERATOR)
    await viewer.until(lambda message: message["t"] == "beat")


async def test_shutdown_closes_with_service_restart_and_ends_the_thread(
    store: Store, join: Join, monitor: Monitor, sign_in: SignIn
) -> None:
    viewer = await join()
    await viewer.watch(store.create_queue("jobs").id)

    await asyncio.to_thread(monitor.shutdown)

    assert await viewer.closed() == RESTARTING
    assert not monitor.running
    assert await Viewer(await asyncio.to_thread(sign_in, "otto")).refused() == RESTARTING
