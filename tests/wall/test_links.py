"""Links: used once, hashed, revocable; their cookie opens one board and nothing else on the site."""

import asyncio
import json
import logging
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.roles import Role
from pqadmin.live.guard import NOT_ALLOWED, SIGNED_OUT
from pqadmin.live.monitor import Monitor
from pqadmin.site_audit import Author
from pqadmin.wall import links
from pqadmin.wall.models import Board, Link
from queues import Store
from tests.accounts.matrix import PAGES, Open
from tests.live.conftest import PATIENCE, Looks
from tests.schemas import validate
from tests.wall.conftest import MakeBoard, new_code, new_id, redeem, revoke


def cookie_of(client: Client) -> Any:
    return client.cookies[links.COOKIE]


def test_a_token_works_once_and_becomes_a_cookie(admin: Client, make_board: MakeBoard) -> None:
    make_board("Hall")
    address = new_id(admin, "hall")
    screen = Client()
    answer = redeem(screen, address)
    assert (answer.status_code, answer["Location"]) == (303, "/wall/hall")
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "no-store" in answer["Cache-Control"]
    cookie = cookie_of(screen)
    assert cookie["path"] == "/wall/hall"
    assert cookie["httponly"]
    assert cookie["samesite"] == "Strict"
    assert not cookie["secure"]
    assert int(cookie["max-age"]) == 400 * 86_400
    shown = screen.get("/wall/hall")
    assert shown.status_code == 200
    assert shown["Referrer-Policy"] == "no-referrer"
    assert "token=" not in shown.content.decode()
    other = Client()
    again = other.get(address)
    assert again.status_code == 403
    assert "This link opens nothing" in again.content.decode()
    assert links.COOKIE not in other.cookies


def test_a_short_code_can_be_typed_on_the_screen(admin: Client, make_board: MakeBoard) -> None:
    make_board("Hall")
    code = new_code(admin, "hall")
    assert re.fullmatch("[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}", code)
    screen = Client()
    assert "Type the code" in screen.get("/wall/").content.decode()
    typed = code.lower().replace("0", "o").replace("1", "l").replace("-", " ")
    answer = screen.post("/wall/", {"code": typed})
    assert (answer.status_code, answer["Location"]) == (303, "/wall/hall")
    assert screen.get("/wall/hall").status_code == 200
    again = Client().post("/wall/", {"code": code})
    assert again.status_code == 422
    assert "This code opens nothing" in again.content.decode()
    assert code not in json.dumps(list(Link.objects.values()), default=str)


def test_a_code_and_its_address_are_one_link(admin: Client, make_board: MakeBoard, store: Store) -> None:
    make_board("Hall")
    code = new_code(admin, "hall")
    assert code not in str(store.audit.entries().entries)
    revoke(admin, "hall", Link.objects.get().pk)
    assert Client().post("/wall/", {"code": code}).status_code == 422
    old = new_code(admin, "hall")
    Link.objects.update(made_at=timezone.now() - timedelta(hours=25))
    assert Client().post("/wall/", {"code": old}).status_code == 422


def test_codes_cannot_be_guessed_by_trying(admin: Client, make_board: MakeBoard) -> None:
    make_board("Hall")
    code, screen = new_code(admin, "hall"), Client()
    answers = [screen.post("/wall/", {"code": f"wrong{number}\u202e\0"}).status_code for number in range(32)]
    assert answers == [422] * 30 + [429] * 2
    assert screen.post("/wall/", {"code": code}).status_code == 429
    other = Client(REMOTE_ADDR="198.51.100.7")
    assert other.post("/wall/", {"code": code}).status_code == 303


def test_the_cookie_is_secure_where_the_site_is(admin: Client, make_board: MakeBoard) -> None:
    make_board("Hall")
    screen = Client()
    redeem(screen, new_id(admin, "hall"), secure=True)
    assert cookie_of(screen)["secure"]


def test_only_hashes_are_kept_and_nothing_of_the_token_is_in_the_audit(
    admin: Client, make_board: MakeBoard, store: Store
) -> None:
    make_board("Hall")
    token = new_id(admin, "hall").partition("token=")[2]
    assert len(token) >= 43
    screen = Client()
    redeem(screen, f"/wall/hall?token={token}")
    secret = cookie_of(screen).value
    kept = json.dumps(list(Link.objects.values()), default=str)
    assert token not in kept
    assert secret not in kept
    assert token != secret
    (told,) = store.audit.entries(verb="mint_link").entries
    assert told.actor == "a-admin"
    assert told.after == {"board": "hall", "link": Link.objects.get().pk, "label": "the hall"}
    assert token not in str(store.audit.entries().entries)
    assert token not in admin.get("/boards/hall/").content.decode()


def test_opening_a_links_address_does_not_use_the_token_up(admin: Client, make_board: MakeBoard) -> None:
    """Chats and mail programs open addresses for a preview, with and without scripts; the screen comes later."""
    make_board("Hall")
    address = new_id(admin, "hall")
    for look in (Client().head, Client().get, Client().get):
        seen = look(address)
        assert seen.status_code == 200
        assert links.COOKIE not in seen.cookies
        assert seen["Cache-Control"] == "no-store, private"
        assert seen["X-Robots-Tag"] == "noindex"
    assert "<script" not in seen.content.decode()
    screen = Client()
    assert redeem(screen, address).status_code == 303
    assert screen.get("/wall/hall").status_code == 200


def test_the_button_of_a_link_passes_the_sites_own_guard_of_forms(admin: Client, make_board: MakeBoard) -> None:
    make_board("Hall")
    address = new_id(admin, "hall")
    token = address.partition("token=")[2]
    screen = Client(enforce_csrf_checks=True)
    assert screen.post("/wall/hall", {"token": token}).status_code == 403
    page = screen.get(address, secure=True)
    # Under `no-referrer` a browser sends `Origin: null` with the form, which Django refuses.
    assert page["Referrer-Policy"] == "strict-origin"
    fields = {"token": token, "csrfmiddlewaretoken": page.context["csrf_token"]}
    sent = screen.post("/wall/hall", fields, secure=True, headers={"Origin": "https://testserver"})
    assert (sent.status_code, sent.url) == (303, "/wall/hall")


def test_a_screen_that_starts_at_its_links_address_is_led_to_the_board(admin: Client, make_board: MakeBoard) -> None:
    make_board("Hall")
    address, screen = new_id(admin, "hall"), Client()
    redeem(screen, address)
    again = screen.get(address)
    assert (again.status_code, again.url) == (303, "/wall/hall")


def test_a_token_is_for_its_own_board_and_for_a_day(
    admin: Client, make_board: MakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_board("Hall")
    make_board("Other")
    address = new_id(admin, "hall")
    assert Client().get(address.replace("/hall?", "/other?")).status_code == 403
    later = timezone.now() + timedelta(hours=25)
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: later)
        assert Client().get(address).status_code == 403
        assert Client().post("/wall/hall", {"token": address.partition("token=")[2]}).status_code == 403
    assert redeem(Client(), address).status_code == 303


@pytest.mark.parametrize("token", ["", "x", "a" * 5000, "%00", "' OR 1=1 --", "\u202e"])
def test_a_wrong_token_opens_nothing(token: str, make_board: MakeBoard, monitor: Monitor) -> None:
    make_board("Hall")
    for send in (Client().get, Client().post):
        answer = send("/wall/hall", {"token": token})
        assert answer.status_code == 403
        assert links.COOKIE not in answer.cookies


def test_no_person_learns_whether_a_board_exists(make_board: MakeBoard, monitor: Monitor) -> None:
    make_board("Hall")
    stranger = Client()
    for slug in ("hall", "nothing"):
        assert stranger.get(f"/wall/{slug}").url == f"/accounts/login/?next=/wall/{slug}"
        assert stranger.get(f"/wall/{slug}?token=x").status_code == 403
        away = stranger.get(f"/wall/{slug}", headers={"Sec-Fetch-Site": "cross-site"})
        assert f'content="0;url=/wall/{slug}"' in away.content.decode(), "strict cookies come with the second request"


def test_a_revoked_link_opens_nothing_and_says_so(screen: Client, admin: Client, store: Store) -> None:
    link = Link.objects.get()
    assert screen.get("/wall/hall").status_code == 200
    revoke(admin, "hall", link.pk)
    answer = screen.get("/wall/hall")
    assert answer.status_code == 403
    assert "may no longer show" in answer.content.decode()
    (told,) = store.audit.entries(verb="revoke_link").entries
    assert told.before == {"board": "hall", "link": link.pk, "label": "the hall"}
    assert "/revoke/" not in admin.get("/boards/hall/").content.decode(), "it is revoked once"


def test_a_cookie_of_one_board_does_not_open_another(screen: Client, make_board: MakeBoard) -> None:
    make_board("Other")
    # The browser would not even send it there: see its path.
    assert screen.get("/wall/other").status_code == 403


def test_a_walls_cookie_opens_nothing_else(screen: Client, store: Store) -> None:
    """Every address of the site but the wall's own sends a screen to the login, as it does a stranger."""
    closed = [name for name, row in PAGES.items() if row.open is not Open.ALL and name != "wall:wall"]
    assert len(closed) > 40
    for name in closed:
        row = PAGES[name]
        answer = screen.generic(
            row.method, reverse(name, kwargs=dict(row.arguments)), content_type="application/x-www-form-urlencoded"
        )
        assert answer.status_code == 302, name
        assert answer.url.startswith("/accounts/login/"), name


def test_a_screen_renews_its_cookie_and_is_seen_for_ninety_days(
    screen: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = timezone.now()
    for day in range(0, 91, 3):
        now = start + timedelta(days=day, minutes=2)
        monkeypatch.setattr(timezone, "now", lambda now=now: now)
        answer = screen.head("/wall/hall", REMOTE_ADDR="192.0.2.7")
        assert answer.status_code == 200
        assert int(answer.cookies[links.COOKIE]["max-age"]) == 400 * 86_400
        link = Link.objects.get()
        assert (link.seen_at, link.seen_from) == (now, "192.0.2.7")


def test_a_screen_that_a_clock_ahead_saw_is_seen_again_by_the_right_one(screen: Client) -> None:
    """The list of links would call a screen that is off just seen until then."""
    ahead = timezone.now() + timedelta(days=1)
    link = Link.objects.get()
    for look in (lambda: screen.head("/wall/hall"), lambda: links.scopes([str(link.pk)])):
        Link.objects.update(seen_at=ahead, seen_from="127.0.0.1")
        look()
        link.refresh_from_db()
        assert link.seen_at is not None
        assert link.seen_at <= timezone.now()


def test_no_token_is_logged_whatever_goes_wrong(
    make_board: MakeBoard, monitor: Monitor, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_board("Hall")
    client = Client(raise_request_exception=False)
    monkeypatch.setattr("pqadmin.wall.specs.Board.objects", None)
    with caplog.at_level(logging.DEBUG):
        answer = client.get("/wall/hall?token=SECRET-TOKEN")
    assert answer.status_code == 500
    assert caplog.records
    assert "SECRET-TOKEN" not in caplog.text
    assert "SECRET-TOKEN" not in answer.content.decode()


async def opened(path: str, cookie: str = "", name: str = links.COOKIE) -> tuple[WebsocketCommunicator, bool]:
    from pqadmin.asgi import application

    headers = [(b"host", b"testserver"), (b"origin", b"http://testserver"), (b"cookie", f"{name}={cookie}".encode())]
    socket = WebsocketCommunicator(application, path, headers=headers)
    accepted, _code = await socket.connect(timeout=PATIENCE)
    return socket, accepted


async def until(socket: WebsocketCommunicator, kind: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        while True:
            event = await socket.receive_output(PATIENCE)
            if event["type"] != "websocket.send":
                return event
            message = json.loads(event["text"])
            validate(message, wall=True)
            if message["t"] == kind:
                return message
            if "seq" in message:
                await socket.send_to(text_data=json.dumps({"t": "ack", "seq": message["seq"]}))


@pytest.fixture
def two_boards(transactional_db: None, store: Store, monitor: Monitor) -> tuple[str, str]:
    """The secrets of the cookies of two boards, of some queues each."""
    now = timezone.now()
    by = {"made_by": "ada", "made_at": now, "changed_by": "ada", "changed_at": now}
    secrets = []
    for name in ("hall", "other"):
        store.create_queue(f"{name}:jobs").push(b"a secret value", priority=7)
        board = Board.objects.create(slug=name, name=name, globs=[f"{name}:*"], **by)
        token = links.mint(board, "x", by=Author(name="ada"), now=now)[1]
        secrets.append(links.redeem(name, token, address="192.0.2.7", now=now) or "")
    return secrets[0], secrets[1]


async def test_the_socket_tells_of_the_boards_queues_only_and_no_values(
    two_boards: tuple[str, str], store: Store
) -> None:
    socket, accepted = await opened("/wall/hall/live/", two_boards[0])
    assert accepted
    frame = await until(socket, "wall")
    (row,) = frame["rows"]
    assert (row["name"], row["ready"], row["min"], row["level"]) == ("hall:jobs", 1, "7", "ok")
    assert frame["counts"]["queues"] == 1
    text = json.dumps(frame)
    assert "secret" not in text
    assert "other" not in text
    item = store.queue("hall:jobs").peek_min()
    assert item.id not in text
    await socket.send_to(text_data=json.dumps({"t": "ack", "seq": frame["seq"]}))
    await asyncio.to_thread(store.queue("hall:jobs").pause, reason="why", by="ops")
    frame = await until(socket, "wall")
    assert (frame["full"], [row["mark"] for row in frame["rows"]]) == (False, ["paused"])
    assert frame["rows"][0]["pause"].keys() == {"reason", "since", "until"}
    assert "ops" not in json.dumps(frame), "no person's name is on a wall"
    await socket.send_to(text_data=json.dumps({"t": "ack", "seq": frame["seq"]}))
    await socket.send_to(text_data='{"t":"watch","topic":"overview","complete":true}')
    assert (await until(socket, "error"))["code"] == "unknown-message"
    await socket.disconnect()


async def test_a_link_that_is_revoked_closes_its_open_screen_at_the_next_look(
    two_boards: tuple[str, str], looks: Looks
) -> None:
    socket, accepted = await opened("/wall/hall/live/", two_boards[0])
    assert accepted
    await until(socket, "wall")
    link = await Link.objects.aget(board__slug="hall")
    await asyncio.to_thread(links.revoke, link, by=Author(name="ada"), now=timezone.now())
    looks.from_now_on()
    event = await until(socket, "closed")
    assert (event["type"], event["code"]) == ("websocket.close", NOT_ALLOWED)
    assert looks.let_stay(lambda badge: bool(badge.link)) == 0


@pytest.mark.parametrize("path", ["/wall/other/live/", "/live/", "/wall/hall/live/more"])
async def test_a_boards_cookie_opens_no_other_socket(path: str, two_boards: tuple[str, str]) -> None:
    _socket, accepted = await opened(path, two_boards[0])
    assert not accepted


async def person_of_the_hall() -> tuple[User, str]:
    """Return a person that sees the hall's queues alone, and the cookie of their session."""
    user = await User.objects.acreate_user("some", password="a horse battery")
    await Grant.objects.acreate(user=user, glob="hall:*", role="viewer", given_at=timezone.now())
    client = AsyncClient()
    await client.aforce_login(user)
    return user, client.cookies[settings.SESSION_COOKIE_NAME].value


async def test_a_person_has_no_socket_to_a_board_of_hidden_queues(two_boards: tuple[str, str]) -> None:
    _user, session = await person_of_the_hall()
    socket, accepted = await opened("/wall/hall/live/", session, settings.SESSION_COOKIE_NAME)
    assert accepted
    assert [row["name"] for row in (await until(socket, "wall"))["rows"]] == ["hall:jobs"]
    await socket.disconnect()
    socket, _accepted = await opened("/wall/other/live/", session, settings.SESSION_COOKIE_NAME)
    event = await until(socket, "wall")
    assert (event["type"], event["code"]) == ("websocket.close", NOT_ALLOWED)


def log_out(user: User) -> None:
    """As the same browser does in another tab."""
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = Session.objects.get().session_key
    assert client.post("/accounts/logout/").status_code == 302


def change_password(user: User) -> None:
    user.set_password("another horse battery")
    user.save()


def change_grant(user: User) -> None:
    Grant.objects.filter(user=user).update(glob="other:*")


@pytest.mark.parametrize(
    ("lose", "code"),
    [
        (log_out, SIGNED_OUT),
        (change_password, SIGNED_OUT),
        (lambda user: User.objects.filter(pk=user.pk).update(is_active=False), SIGNED_OUT),
        (lambda user: Grant.objects.filter(user=user).delete(), NOT_ALLOWED),
        (change_grant, NOT_ALLOWED),
    ],
    ids=["logout", "password", "deactivated", "grant taken", "grant changed"],
)
async def test_a_persons_open_wall_loses_what_he_loses_at_the_next_look(
    lose: Callable[[User], object], code: int, two_boards: tuple[str, str], looks: Looks
) -> None:
    user, session = await person_of_the_hall()
    socket, accepted = await opened("/wall/hall/live/", session, settings.SESSION_COOKIE_NAME)
    assert accepted
    await until(socket, "wall")
    await asyncio.to_thread(lose, user)
    looks.from_now_on()
    event = await until(socket, "closed")
    assert (event["type"], event["code"]) == ("websocket.close", code)
    assert looks.let_stay(lambda badge: badge.user_id == user.pk and badge.scope.sees("hall:jobs")) == 0


async def test_another_origin_and_no_cookie_are_refused(two_boards: tuple[str, str]) -> None:
    assert not (await opened("/wall/hall/live/"))[1]
    assert not (await opened("/wall/hall/live/", two_boards[0], name="other"))[1]


def test_people_open_the_walls_that_they_may_read(client_of: Any, make_board: MakeBoard) -> None:
    make_board("Hall")
    assert client_of(Role.VIEWER).get("/wall/hall").status_code == 200
    assert client_of(Role.OPERATOR).get("/wall/nothing").status_code == 404
    assert client_of(Role.NONE).get("/wall/hall").status_code == 403
