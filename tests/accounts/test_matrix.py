"""The table of `matrix.py` against the real site: every view, every role."""

import re
from collections.abc import Callable, Iterator

import pytest
from asgiref.sync import async_to_sync
from channels.security.websocket import WebsocketDenier
from channels.testing import WebsocketCommunicator
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.rights import Right, Role
from pqadmin.accounts.roles import grant
from pqadmin.accounts.scope import Scope
from pqadmin.asgi import application, routes
from pqadmin.store import get_store
from tests.accounts.conftest import PATIENCE
from tests.accounts.matrix import PAGES, SOCKETS, Open

LOGIN = "/accounts/login/"
ROLES = [None, *Role]


def patterns(resolver: URLResolver, namespaces: tuple[str, ...] = ()) -> Iterator[tuple[str, URLPattern]]:
    """Yield every pattern of the URLconf with its full name."""
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            inner = (*namespaces, entry.namespace) if entry.namespace else namespaces
            yield from patterns(entry, inner)
        else:
            yield ":".join([*namespaces, entry.name or str(entry.pattern)]), entry


ALL = list(patterns(get_resolver()))
UNNAMED = {"<path:object_id>/": "/admin/auth/user/1/", "(?P<url>.*)$": "/admin/nothing/here/"}
OF_ADMIN = [(name, pattern) for name, pattern in ALL if name.startswith("admin:")]


#: A role for all queues, and grants; the views of the rows are about the queue `jobs`.
GRANTED: dict[str, tuple[Role, dict[str, Role]]] = {
    "elsewhere": (Role.NONE, {"mail*": Role.OPERATOR}),
    "sees-jobs": (Role.NONE, {"mail*": Role.OPERATOR, "j*": Role.VIEWER}),
    "acts-on-jobs": (Role.NONE, {"jobs": Role.OPERATOR}),
    "viewer-acts-elsewhere": (Role.VIEWER, {"mail*": Role.OPERATOR}),
    "viewer-acts-on-jobs": (Role.VIEWER, {"job?": Role.OPERATOR}),
}


@pytest.fixture(scope="module")
def sessions(django_db_setup, django_db_blocker) -> Iterator[dict[Role | str, str]]:
    """Sessions of one person of every role, and of all people in `GRANTED`.

    Made once for all tests of this module, each of which is rolled back to them: signing in a new person for each of
    hundreds of requests takes as long as the requests.
    """
    with django_db_blocker.unblock():
        people: dict[Role | str, User] = {}
        for who in (*Role, *GRANTED):
            role, grants = (who, {}) if isinstance(who, Role) else GRANTED[who]
            people[who] = user = User.objects.create_user(f"seated-{who}")
            if role is not Role.NONE:
                grant(user, role)
            for glob, given in grants.items():
                Grant.objects.create(user=user, glob=glob, role=given, given_by="root", given_at=timezone.now())
        found = {}
        for who, user in people.items():
            client = Client()
            client.force_login(user)
            found[who] = client.cookies[settings.SESSION_COOKIE_NAME].value
        yield found
        Session.objects.filter(session_key__in=found.values()).delete()
        for user in people.values():
            user.delete()


@pytest.fixture
def seated(db: None, sessions: dict[Role | str, str]) -> Callable[[Role | str | None], Client]:
    """Return a browser in which a person is signed in: of a role, of `GRANTED`, or an anonymous one."""

    def seat(who: Role | str | None) -> Client:
        client = Client()
        if who is not None:
            client.cookies[settings.SESSION_COOKIE_NAME] = sessions[who]
        return client

    return seat


def test_every_view_has_a_row_and_every_row_a_view() -> None:
    assert {name for name, _ in ALL} - {name for name, _ in OF_ADMIN} == set(PAGES)


def test_every_consumer_has_a_row_and_every_row_a_consumer() -> None:
    """Of the routes that the site serves; behind them is nothing but a refusal."""
    *named, last = routes
    assert sorted(str(route.name) for route in named) == sorted(SOCKETS)
    assert last.callback.consumer_class is WebsocketDenier


@pytest.mark.parametrize("who", [None, *Role, *GRANTED], ids=lambda who: who or "stranger")
@pytest.mark.parametrize("name", SOCKETS)
def test_sockets_let_in_those_with_a_right_alone(name: str, who: Role | str | None, transactional_db, granted) -> None:
    """Only people that may see some queue are let in; what each is then shown: tests/live, tests/wall."""
    cookie = ""
    role, grants = (who, {}) if isinstance(who, Role) else GRANTED.get(who or "", (Role.NONE, {}))
    if who is not None:
        client = Client()
        client.force_login(granted(role, grants))
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    (route,) = (route for route in routes if route.name == name)
    path = "/" + re.sub(r"<[^>]+>", "hall", str(route.pattern))
    expected = role in SOCKETS[name].value or bool(grants)
    assert async_to_sync(let_in)(path, cookie) is expected


async def let_in(path: str, cookie: str) -> bool:
    """Say whether a socket is opened for a session."""
    headers = [(b"host", b"testserver"), (b"origin", b"http://testserver")]
    headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    socket = WebsocketCommunicator(application, path, headers=headers)
    accepted, _code = await socket.connect(timeout=PATIENCE)
    if accepted:
        await socket.disconnect()
    return bool(accepted)


def is_open(name: str, role: Role | None) -> bool:
    return PAGES[name].open is Open.ALL or role in PAGES[name].open.value


@pytest.mark.parametrize(
    ("name", "role"), [(name, role) for name in PAGES for role in ROLES if is_open(name, role)], ids=str
)
def test_open_views_answer_every_role(name: str, role: Role | None, seated, jobs) -> None:
    expected = 302 if name == "accounts:login" and role else PAGES[name].status
    answer = ask(seated(role), name)
    assert answer.status_code == expected, answer.content[-2000:]


@pytest.mark.parametrize("name", [name for name, row in PAGES.items() if row.open is not Open.ALL])
def test_other_views_refuse_a_role_and_change_nothing(name: str, seated, jobs) -> None:
    before = jobs_state()
    for role in ROLES:
        if is_open(name, role):
            continue
        answer = ask(seated(role), name)
        if role is None:
            assert answer.status_code == 302
            sent = "unsent=1&" if PAGES[name].method == "POST" else ""
            assert answer.url.startswith(f"{LOGIN}?{sent}next=")
        else:
            assert answer.status_code == 403, role
            assert f"<b>{role.label}</b>" in answer.content.decode()
            needed = Role.VIEWER if role is Role.NONE else PAGES[name].open.value[0]
            assert f"<b>{needed.label}</b>" in answer.content.decode()
    assert jobs_state() == before


def ask(client: Client, name: str, **arguments: str) -> HttpResponse:
    """Make the request of a row."""
    row = PAGES[name]
    answer = client.generic(
        row.method,
        reverse(name, kwargs={**row.arguments, **arguments}),
        data="&".join(f"{key}={value}" for key, value in row.data.items()),
        content_type="application/x-www-form-urlencoded",
    )
    answer.close()  # an export that no person reads to its end holds one of few slots
    return answer


RIGHTS = {Open.VIEWERS: Right.READ, Open.OPERATORS: Right.ACT, Open.ADMINS: Right.ADMIN}
BY_GRANTS = [name for name, row in PAGES.items() if row.open in RIGHTS]


def is_granted(name: str, who: str) -> bool:
    """Say whether the grants of a person open a view."""
    row, scope = PAGES[name], Scope.of(GRANTED[who][0], GRANTED[who][1].items())
    right, queue = RIGHTS[row.open], row.arguments.get("name")
    if queue is not None:
        return scope.can(right, queue)
    return scope.role.has(right) if row.everywhere else scope.anywhere(right)


@pytest.mark.parametrize(
    ("name", "who"), [(name, who) for name in BY_GRANTS for who in GRANTED if is_granted(name, who)]
)
def test_a_grant_opens_views(name: str, who: str, seated, jobs) -> None:
    answer = ask(seated(who), name)
    assert answer.status_code == PAGES[name].status, answer.content[-2000:]


@pytest.mark.parametrize("name", BY_GRANTS)
def test_a_view_that_grants_do_not_open(name: str, seated, jobs) -> None:
    before, queue, right = jobs_state(), PAGES[name].arguments.get("name"), RIGHTS[PAGES[name].open]
    for who in GRANTED:
        if is_granted(name, who):
            continue
        answer = ask(seated(who), name)
        if queue is None or Scope.of(GRANTED[who][0], GRANTED[who][1].items()).sees(queue):
            assert answer.status_code == 403, who
            text = answer.content.decode()
            assert f"<b>{right.role.label}</b>" in text
            assert ("on the queue" in text) is (queue is not None)
        else:
            assert answer.status_code == 404, who
    assert jobs_state() == before


@pytest.mark.parametrize("name", [name for name, row in PAGES.items() if "name" in row.arguments])
def test_a_hidden_queue_answers_as_one_that_is_not_there(name: str, seated, jobs) -> None:
    """Byte for byte, but for what is new in every answer; whether it is there and whether other answers look alike."""
    client = seated("elsewhere")
    get_store().create_queue("jobs2")
    hidden = ask(client, name)
    get_store().delete_queue("jobs")
    get_store().delete_queue("jobs2")
    missing = ask(client, name)
    assert hidden.status_code == missing.status_code == 404
    assert sorted(hidden.headers) == sorted(missing.headers)
    assert steady(hidden) == steady(missing)
    assert "jobs2" not in hidden.content.decode()


def steady(answer: HttpResponse) -> str:
    """Return an answer's text without the tokens that each answer has of its own."""
    return re.sub(r'(name="csrfmiddlewaretoken" value=)"[^"]+"', r"\1", answer.content.decode())


def test_get_of_an_act_changes_nothing(seated, jobs) -> None:
    """A link from elsewhere, a prefetch, a crawler: 405, or a page with a form."""
    before, admin = jobs_state(), seated(Role.ADMIN)
    for name, row in PAGES.items():
        if row.method == "POST":
            answer = admin.get(reverse(name, kwargs=dict(row.arguments)))
            assert answer.status_code in {200, 302, 403, 404, 405}, name
            assert jobs_state() == before, name


def of_admin(pattern: URLPattern, name: str, **arguments: str) -> str:
    """Return an address of Django's admin."""
    samples = {"app_label": "auth", "object_id": "1", "content_type_id": "1", "id": "1", **arguments}
    if pattern.name is None:
        return UNNAMED[str(pattern.pattern)]
    return reverse(name, kwargs={key: samples[key] for key in pattern.pattern.regex.groupindex})


@pytest.mark.parametrize(("name", "pattern"), OF_ADMIN, ids=lambda value: value if isinstance(value, str) else "")
def test_django_admin_is_for_superusers(name: str, pattern: URLPattern, seated) -> None:
    url = of_admin(pattern, name)
    for role in ROLES:
        client = seated(role)
        answer = client.post(url) if name == "admin:logout" else client.get(url, follow=True)
        if name == "admin:logout":
            assert role is not None or answer.status_code == 302
        elif role is None:
            assert answer.redirect_chain[-1][0].startswith(LOGIN)
        elif role is not Role.ADMIN:
            assert answer.status_code == 403, role
        elif name == "admin:index":
            assert answer.status_code == 200


def test_django_admin_knows_people_and_groups_only() -> None:
    assert {model for model in apps.get_models() if admin.site.is_registered(model)} == {User, Group}


def jobs_state() -> object:
    """Return all that can be seen of the store."""
    store = get_store()
    return store.directory(), [(queue.name, queue.totals()) for queue in store.queues()], store.audit.entries()
