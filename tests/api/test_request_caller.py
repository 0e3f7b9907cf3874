"""Callers of the API: what a token or a session may do, and from when on no longer, in every process."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncRequestFactory, Client
from django.utils import timezone

from pqadmin.accounts.arming import NotArmed
from pqadmin.accounts.authentication import Badge, Credentials, Refusal, Unauthenticated, digest
from pqadmin.accounts.caller import Caller, Verb, VerbMissing
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Right, RightMissing, Role
from pqadmin.accounts.roles import grant
from pqadmin.accounts.scope import Scope
from pqadmin.api.request_caller import CsrfRefused, caller_of
from queues.errors import QueueNotFound
from tests.api.conftest import Program

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "pq_" + "x" * 43
T0 = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Now:
    """The time, moved only by tests."""

    def __init__(self) -> None:
        self.at = T0

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture(params=["SQLite", "another database"])
def credentials(now: Now, request: pytest.FixtureRequest) -> Credentials:
    return Credentials(clock=now) if request.param == "SQLite" else Credentials(clock=now, changes=lambda: None)


def make(owner: User, **fields: object) -> Token:
    """Make a token of the secret, good for everything."""
    given: dict[str, object] = {"name": "ci", "verbs": list(Verb), "queues": ["*"], "created_at": T0}
    return Token.objects.create(owner=owner, **(given | {"digest": digest(SECRET)} | fields))


async def in_thread(do: Callable[..., Any], *values: Any, **named: Any) -> Any:
    return await sync_to_async(do, thread_sensitive=True)(*values, **named)


async def ask(credentials: Credentials, secret: str = SECRET) -> Caller | Refusal:
    try:
        return await credentials.caller(Badge(token=digest(secret)))
    except Unauthenticated as error:
        return error.refusal


async def test_a_token_has_no_more_rights_than_its_owner_and_its_globs(granted, credentials) -> None:
    owner = await User.objects.aget(pk=(await in_thread(granted, Role.VIEWER, {"orders:*": Role.OPERATOR})).pk)
    await in_thread(make, owner, queues=["orders:eu*", "mail"], verbs=["read", "push"])
    caller = await ask(credentials)
    assert isinstance(caller, Caller)
    assert (caller.name, caller.user_id) == ("token:ci", owner.pk)
    caller.require(Verb.PUSH, Right.ACT, "orders:eu:1")
    caller.require(Verb.READ, Right.READ, "mail")
    caller.require(Verb.READ, Right.READ)
    for hidden in ("orders:us", "other"):
        with pytest.raises(QueueNotFound):
            caller.require(Verb.READ, Right.READ, hidden)
    with pytest.raises(RightMissing):
        caller.require(Verb.PUSH, Right.ACT, "mail")
    with pytest.raises(VerbMissing):
        caller.require(Verb.TAKE, Right.ACT, "orders:eu:1")
    with pytest.raises(QueueNotFound):  # hidden whatever the verb
        caller.require(Verb.TAKE, Right.ACT, "orders:us")


async def test_what_was_changed_holds_for_the_next_request(person, credentials) -> None:
    owner = await in_thread(person, Role.VIEWER, "ann")
    assert await ask(credentials) is Refusal.UNKNOWN
    token = await in_thread(make, owner)
    before = await ask(credentials)
    assert isinstance(before, Caller)
    assert await ask(credentials) == before
    await in_thread(grant, owner, Role.OPERATOR)
    after = await ask(credentials)
    assert isinstance(after, Caller)
    assert after.scope.can(Right.ACT, "jobs")
    owner.is_active = False
    await owner.asave()
    assert await ask(credentials) is Refusal.OWNER
    owner.is_active = True
    await owner.asave()
    assert isinstance(await ask(credentials), Caller)
    token.revoked_at = T0
    await token.asave()
    assert await ask(credentials) is Refusal.REVOKED
    await owner.adelete()
    assert await ask(credentials) is Refusal.UNKNOWN


async def test_nothing_is_read_again_while_nothing_changes(person, now) -> None:
    await in_thread(make, await in_thread(person, Role.VIEWER, "ann"))
    credentials = Credentials(clock=now)
    before = await ask(credentials)
    assert await ask(credentials) is before
    await Token.objects.aupdate(rate=5)
    assert await ask(credentials) is not before


async def test_requests_that_wait_together_get_their_own_callers(person, credentials) -> None:
    owner = await in_thread(person, Role.VIEWER, "ann")
    secrets = [f"pq_{n}" for n in range(20)]
    for n, secret in enumerate(secrets):
        await in_thread(lambda n=n, secret=secret: make(owner, name=f"t{n}", digest=digest(secret)))
    left = asyncio.ensure_future(ask(credentials, secrets[0]))  # its client leaves while it waits
    asked = [asyncio.ensure_future(ask(credentials, secret)) for secret in [*secrets, "pq_unknown"]]
    await asyncio.sleep(0)
    left.cancel()
    *callers, unknown = await asyncio.gather(*asked)
    assert [caller.name for caller in callers] == [f"token:t{n}" for n in range(20)]
    assert unknown is Refusal.UNKNOWN


async def test_a_token_ends_by_the_clock(person, credentials, now) -> None:
    await in_thread(make, await in_thread(person, Role.VIEWER, "ann"), expires_at=T0 + timedelta(days=1))
    now.at = T0 + timedelta(days=1, seconds=-1)
    assert isinstance(await ask(credentials), Caller)
    now.at = T0 + timedelta(days=1)
    assert await ask(credentials) is Refusal.EXPIRED


async def test_use_is_recorded_once_a_minute(person, credentials, now) -> None:
    token = await in_thread(make, await in_thread(person, Role.VIEWER, "ann"))

    async def use(address: str) -> tuple[datetime | None, str]:
        caller = await ask(credentials)
        assert isinstance(caller, Caller)
        credentials.record_use(caller, address)
        await ask(credentials, "another")  # is answered after the record was written
        await token.arefresh_from_db()
        return token.last_used_at, token.last_address

    assert await use("192.0.2.1") == (T0, "192.0.2.1")
    now.at = T0 + timedelta(seconds=59)
    assert await use("192.0.2.2") == (T0, "192.0.2.1")
    now.at = T0 + timedelta(seconds=60)
    assert await use("192.0.2.3") == (now.at, "192.0.2.3")


def headers(**more: str) -> dict[str, str]:
    return {"host": "testserver", **more}


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer  ", f"Basic {SECRET}", f"Bearer {SECRET}x", SECRET])
async def test_other_headers_are_no_credential(shown: str, person) -> None:
    await in_thread(make, await in_thread(person, Role.ADMIN, "ann"))
    request = AsyncRequestFactory().get("/", headers=headers(authorization=shown))
    with pytest.raises(Unauthenticated):
        await caller_of(request)
    request = AsyncRequestFactory().get("/", {"access_token": SECRET, "token": SECRET})
    with pytest.raises(Unauthenticated):
        await caller_of(request)


async def test_the_header_names_the_caller(person) -> None:
    token = await in_thread(make, await in_thread(person, Role.ADMIN, "ann"))
    request = AsyncRequestFactory().post("/", headers=headers(authorization=f"bearer {SECRET}"))
    assert (await caller_of(request)).token_id == token.pk


async def test_a_session_needs_the_token_of_forms_to_write(person) -> None:
    user = await in_thread(person, Role.OPERATOR, "ann")
    browser = Client()
    await in_thread(browser.force_login, user)
    cookies = {name: cookie.value for name, cookie in browser.cookies.items()}
    factory = AsyncRequestFactory()
    factory.cookies.load(cookies)
    caller = await caller_of(factory.get("/"))
    assert (caller.name, caller.token_id, caller.verbs) == ("ann", None, frozenset(Verb))
    assert caller.scope == Scope.of(Role.OPERATOR)
    with pytest.raises(CsrfRefused):
        await caller_of(factory.post("/"))
    proof = "c" * 32
    factory.cookies["pqadmin_csrf"] = proof
    with pytest.raises(CsrfRefused):
        await caller_of(factory.post("/"))
    assert await caller_of(factory.post("/", headers=headers(**{"x-csrftoken": proof}))) == caller
    with pytest.raises(CsrfRefused):
        stranger = headers(**{"x-csrftoken": proof, "origin": "https://evil.example"})
        await caller_of(factory.post("/", headers=stranger))
    await in_thread(browser.logout)
    with pytest.raises(Unauthenticated):
        await caller_of(factory.get("/"))


async def test_a_session_writes_to_a_read_only_site_only_when_armed(person, settings) -> None:
    settings.PQADMIN_ARM_MINUTES = 15
    user = await in_thread(person, Role.OPERATOR, "ann")
    browser = Client()
    await in_thread(browser.force_login, user)
    factory = AsyncRequestFactory()
    factory.cookies.load({name: cookie.value for name, cookie in browser.cookies.items()})
    caller = await caller_of(factory.get("/"))
    caller.require(Verb.READ, Right.READ, "jobs")
    with pytest.raises(NotArmed):
        caller.require(Verb.PUSH, Right.ACT, "jobs")

    def arm() -> None:
        session = browser.session
        session["armed_until"] = int((timezone.now() + timedelta(minutes=5)).timestamp())
        session.save()

    await in_thread(arm)
    (await caller_of(factory.get("/"))).require(Verb.PUSH, Right.ACT, "jobs")
    await in_thread(make, user)
    program = factory.get("/", headers=headers(authorization=f"Bearer {SECRET}"))
    (await caller_of(program)).require(Verb.PUSH, Right.ACT, "jobs")  # programs need no window


async def test_what_a_token_does_is_audited_by_its_name(site, person, granted) -> None:
    await in_thread(site.create_queue, "jobs")
    await in_thread(make, await in_thread(person, Role.OPERATOR, "ann"), name="deploy", created_at=timezone.now())
    async with Program(SECRET) as program:
        assert (await program.post("queues/jobs/pause", json={"reason": "maintenance"})).status_code == 200
    entry = site.audit.entries(queue="jobs").entries[0]
    assert (entry.actor, entry.via, entry.verb, entry.reason) == ("token:deploy", "api", "pause", "maintenance")
    browser = Client()
    await in_thread(browser.force_login, await User.objects.aget(username="ann"))
    page = (await in_thread(browser.get, "/audit/", {"by": "token:deploy"})).content.decode()
    assert "<bdi>token:deploy</bdi>" in page
    assert "maintenance" in page


class Asker:
    """Another process that is asked about tokens."""

    def __init__(self, environment: dict[str, str]) -> None:
        program = [sys.executable, "-m", "tests.api.credential_asker"]
        self._process = subprocess.Popen(
            program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, secret: str) -> str:
        assert self._process.stdin is not None
        print(secret, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture
def asker(tmp_path: Path) -> Iterator[Callable[[], Asker]]:
    """Start a process on the tables of a site of its own; its tables are in `tmp_path`."""
    environment = {**os.environ, "PQADMIN_DATA": str(tmp_path), "PQADMIN_STORE": "memory:"}
    started: list[Asker] = []

    def start() -> Asker:
        started.append(Asker(environment))
        return started[-1]

    yield start
    for each in started:
        each.end()


def elsewhere(tmp_path: Path, code: str) -> None:
    """Change the tables from one more process."""
    code = f"import django; django.setup()\nfrom tests.api.in_tables import *\n{code}"
    environment = {**os.environ, "PQADMIN_DATA": str(tmp_path), "PQADMIN_STORE": "memory:"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_revoked_token_is_refused_by_every_process_at_once(asker, tmp_path) -> None:
    elsewhere(tmp_path, f"create({SECRET!r})")
    first, second = asker(), asker()
    for _ in range(2):
        assert first(SECRET) == second(SECRET) == "token:ci orders:eu mail"
    elsewhere(tmp_path, "restrict('orders:*')")
    assert first(SECRET) == second(SECRET) == "token:ci orders:eu"
    elsewhere(tmp_path, "revoke()")
    assert first(SECRET) == second(SECRET) == "REVOKED"
    assert asker()(SECRET) == "REVOKED"  # and after a restart
