"""What holds for every address of the URLconf and every socket of the routing, future ones included."""

import logging
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from asgiref.sync import async_to_sync
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from pqadmin.accounts.rights import Role
from pqadmin.asgi import application, routes
from pqadmin.server.security import HEADERS
from pqadmin.store import get_store
from tests.accounts.conftest import PASSWORD, PATIENCE
from tests.accounts.matrix import PAGES, SOCKETS
from tests.accounts.test_matrix import ALL, UNNAMED, steady

pytestmark = pytest.mark.django_db

EVIL = "https://evil.example/"
SAMPLES = {"app_label": "auth", "object_id": "1", "content_type_id": "1", "id": "1"}


def address(name: str, pattern) -> str:
    """Return an address that a pattern matches."""
    if name in PAGES:
        return reverse(name, kwargs=dict(PAGES[name].arguments))
    if pattern.name is None:
        return UNNAMED[str(pattern.pattern)]
    return reverse(name, kwargs={key: SAMPLES[key] for key in pattern.pattern.regex.groupindex})


ADDRESSES = [(name, address(name, pattern)) for name, pattern in ALL]


@pytest.fixture
def each(person, jobs) -> Iterator[tuple[str, str, Client]]:
    """Every view's name and address, with a browser in which an admin is signed in."""
    user = person(Role.ADMIN)
    client = Client()
    client.force_login(user)
    kept = client.cookies[settings.SESSION_COOKIE_NAME].value

    def signed_in() -> Iterator[tuple[str, str, Client]]:
        nonlocal kept
        for name, path in ADDRESSES:
            client = Client()
            client.cookies[settings.SESSION_COOKIE_NAME] = kept
            yield name, path, client
            if "logout" in name:
                client.force_login(user)
                kept = client.cookies[settings.SESSION_COOKIE_NAME].value

    return signed_in()


def test_every_answer_cannot_be_framed_sniffed_or_run_from_elsewhere(each) -> None:
    for view, path, client in each:
        for answer in (client.get(path), Client().post(path)):
            answer.close()
            policy = answer["Content-Security-Policy"]
            assert "default-src 'none'" in policy, view
            assert "frame-ancestors 'none'" in policy, view
            assert "unsafe" not in policy, view
            for name, value in HEADERS.items():
                # A wall's page sends no referrer at all.
                assert answer[name] == value or (name == "Referrer-Policy" and answer[name] == "no-referrer"), view


@pytest.mark.parametrize("forwarded", [{}, {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.9"}])
def test_a_login_through_a_proxy_that_is_not_declared_says_what_to_set(forwarded: dict[str, str]) -> None:
    """The browser came by https, and the site does not know. It takes its form for that of another site."""
    client = Client(enforce_csrf_checks=True)
    client.get("/accounts/login/")
    token = {"csrfmiddlewaretoken": client.cookies[settings.CSRF_COOKIE_NAME].value}
    told = {}
    for origin in ("https://testserver", "https://evil.example"):
        answer = client.post("/accounts/login/", token, headers={"Origin": origin, **forwarded})
        assert answer.status_code == 403
        told[origin] = answer.content.decode()
    own, foreign = told.values()
    assert "PQADMIN_TRUSTED_PROXY" in own
    assert "too old" not in own
    assert "PQADMIN_TRUSTED_PROXY" not in foreign
    assert "does not come from this site" in foreign


def refusal_in_short(request, reason="") -> HttpResponse:
    """Answer as the site does to a form from elsewhere, without its page: hundreds of those take most of a test."""
    return HttpResponse(status=403)


def test_a_form_without_its_token_is_refused_in_our_words(person, jobs) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person(Role.ADMIN))
    answer = client.post("/theme/", {"theme": "dark"})
    assert answer.status_code == 403
    assert "The form has expired" in answer.content.decode()


def test_every_post_needs_its_token_and_its_own_origin(each, settings) -> None:
    settings.CSRF_FAILURE_VIEW = f"{__name__}.refusal_in_short"
    before = get_store().audit.entries().entries
    for view, path, client in each:
        client.handler.enforce_csrf_checks = True
        assert client.post(path).status_code == 403, view
        client.cookies[settings.CSRF_COOKIE_NAME] = "a" * 32
        token = {"csrfmiddlewaretoken": "a" * 32}
        assert client.post(path, token, headers={"Origin": EVIL.rstrip("/")}).status_code == 403, view
        assert client.post(path, token, headers={"Origin": "null"}).status_code == 403, view
    assert get_store().audit.entries().entries == before


def test_the_token_that_these_tests_send_would_do(person, jobs) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person(Role.ADMIN))
    client.cookies[settings.CSRF_COOKIE_NAME] = "a" * 32
    token = {"csrfmiddlewaretoken": "a" * 32, "theme": "dark", "next": "/"}
    assert client.post("/theme/", token, headers={"Origin": "http://testserver"}).status_code == 303


def test_no_view_is_exempt_from_the_token() -> None:
    assert [name for name, pattern in ALL if getattr(pattern.callback, "csrf_exempt", False)] == []


def test_no_address_answers_under_another_host(each) -> None:
    for view, path, client in each:
        assert client.get(path, headers={"Host": "evil.example"}).status_code == 400, view


ELSEWHERE = (EVIL, "//evil.example/", "/\\evil.example/", "https:evil.example")


def test_no_answer_leads_to_another_site(each, monkeypatch) -> None:
    """Whatever an address takes as the next one; the names of fields that are read somewhere in the site.

    Headers lead on, so pages are not written out: that would be most of the time of 500 answers.
    """
    monkeypatch.setattr("django.template.loader.render_to_string", lambda *_, **__: "")
    fields = ("next", "to", "back", "next_url", "redirect", "return", "url")
    more = {"theme": "dark", "language": "en", "zone": "UTC"}
    for number, (view, path, signed_in) in enumerate(each):
        for turn in range(2):
            elsewhere = ELSEWHERE[(number + turn) % len(ELSEWHERE)]
            said = dict.fromkeys(fields, elsewhere)
            headers = {"Referer": elsewhere, "HX-Request": "true", "HX-Current-URL": elsewhere}
            client = signed_in if turn or "login" not in view else Client()
            for answer in (
                client.get(path, said, headers=headers if turn else {}),
                client.post(path, said | more, headers={} if turn else {"Referer": elsewhere}),
                *([Client().post(path, said, headers=headers)] if turn else []),
            ):
                answer.close()
                for name in ("Location", "HX-Redirect", "HX-Location", "Refresh"):
                    target = urlsplit(answer.get(name, ""))
                    assert (target.scheme, target.netloc) == ("", ""), (view, answer[name])
                    assert "\\" not in target.path, (view, answer[name])


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
@pytest.mark.parametrize("path", ["/theme/", "/language/", "/time-zone/", "/arm/", "/disarm/", "/accounts/login/"])
def test_no_form_redirects_to_another_site(path: str, elsewhere: str, person, jobs) -> None:
    person(Role.ADMIN, "ann")
    client = Client()
    login = {"username": "ann", "password": PASSWORD}
    if "login" not in path:
        client.post("/accounts/login/", login)
    more = {"theme": "dark", "language": "en", "zone": "UTC", "next": elsewhere, "to": elsewhere}
    answer = client.post(path, more | login)
    assert answer.status_code in {302, 303}
    assert urlsplit(answer.url).netloc == ""
    assert answer.url.startswith("/")
    assert "evil" not in answer.url


def test_every_socket_refuses_another_origin_and_strangers(transactional_db) -> None:
    named = {route.name: route for route in routes if route.name}
    assert set(named) == set(SOCKETS)
    for name, route in named.items():
        path = "/" + re.sub(r"<[^>]+>", "x", str(route.pattern))
        for origin in (EVIL, "null", "", "http://testserver.evil.example", "http://testserver:81"):
            assert async_to_sync(refused)(path, origin), (name, origin)
        assert async_to_sync(refused)(path, "http://testserver"), name


async def refused(path: str, origin: str) -> bool:
    headers = [(b"host", b"testserver")] + ([(b"origin", origin.encode())] if origin else [])
    socket = WebsocketCommunicator(application, path, headers=headers)
    accepted, _code = await socket.connect(timeout=PATIENCE)
    if accepted:
        await socket.disconnect()
    return not accepted


def walk(client: Client) -> Iterator[object]:
    """Visit the site as a person would, with every kind of secret on the way."""
    yield client.post("/accounts/login/", {"username": "ann", "password": "wrong-zebra-password"})
    yield client.post("/accounts/login/", {"username": "ann", "password": PASSWORD})
    for name, row in PAGES.items():
        if not name.startswith("accounts:"):
            path = reverse(name, kwargs=dict(row.arguments))
            yield client.get(path, {"q": "zebra-query"})
            yield client.post(path, {**row.data, "value": "zebra-value", "reason": "zebra-reason"})
    yield client.post("/accounts/password/", {"old_password": PASSWORD, "new_password1": "zebra", "new_password2": "z"})
    yield client.get("/wall/x/?token=zebra-token")
    yield client.get("/queues/%00/")
    yield client.post("/theme/", {"theme": "dark", "next": "/"})
    yield client.post("/language/", {"language": "en", "next": "/"})


class SecureClient(Client):
    """A browser that comes by https."""

    def generic(self, *arguments, **named):
        """Make a request by https."""
        return super().generic(*arguments, **{**named, "secure": True})


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_no_secret_is_ever_logged_and_every_cookie_is_for_this_site(secure: bool, person, jobs, caplog) -> None:
    """One walk for both; under https every cookie is secure."""
    get_store().queue("jobs").push(b'{"password": "zebra-value"}', priority=1)
    person(Role.ADMIN, "ann")
    secrets, seen = {"zebra", PASSWORD, settings.SECRET_KEY}, set()
    client = SecureClient() if secure else Client()
    with caplog.at_level(logging.DEBUG):
        for name in ("pqadmin", "queues", "django", "django.request", "django.server", "daphne"):
            caplog.set_level(logging.DEBUG, name)
        for answer in walk(client):
            answer.close()
            secrets |= {
                client.cookies[name].value for name in ("pqadmin_session", "pqadmin_csrf") if name in client.cookies
            }
            secrets |= set(re.findall(r'id="password"[^>]*>([^<]+)<', getattr(answer, "content", b"").decode()))
            for name, cookie in answer.cookies.items():
                if cookie["max-age"] == 0:  # it is taken away
                    continue
                seen.add(name)
                assert cookie["httponly"], name
                assert cookie["samesite"] in {"Lax", "Strict"}, name
                assert cookie["domain"] == "", name
                assert bool(cookie["secure"]) is secure, name
    assert {"pqadmin_session", "pqadmin_csrf"} < seen
    assert len(secrets) >= 5
    assert caplog.records
    lines = [f"{record.getMessage()} {record.exc_text or ''}" for record in caplog.records]
    for secret in filter(None, secrets):
        assert [line for line in lines if secret in line] == [], secret


@pytest.mark.parametrize("planted", ["", "a" * 32, "chosen"])
def test_the_session_and_the_token_are_new_ones_after_login(planted: str, person) -> None:
    person(Role.VIEWER, "ann")
    client = Client()
    client.cookies["pqadmin_session"] = planted
    before = steady(client.get("/accounts/login/"))
    token = client.cookies["pqadmin_csrf"].value
    client.post("/accounts/login/", {"username": "ann", "password": PASSWORD})
    assert client.cookies["pqadmin_session"].value not in {"", planted}
    assert client.cookies["pqadmin_csrf"].value != token
    assert before
