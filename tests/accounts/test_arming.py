"""A read-only site: nothing is written until the person arms it, and what was typed is not lost."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, reverse

from pqadmin.accounts.rights import Role
from pqadmin.store import get_store
from tests.accounts.matrix import PAGES, Open
from tests.accounts.test_matrix import OF_ADMIN, of_admin

pytestmark = pytest.mark.django_db

ARM = "/arm/"


@pytest.fixture(autouse=True)
def read_only(settings) -> None:
    settings.PQADMIN_ARM_MINUTES = 15
    settings.PQADMIN_ENVIRONMENT = "staging"


@pytest.fixture
def client(person, jobs) -> Client:
    client = Client()
    client.force_login(person(Role.ADMIN, "root"))
    return client


def fields(text: str, action: str) -> dict[str, str]:
    """Return the hidden fields of the form that posts to an address."""
    form = text[text.index(f'action="{action}"') :].partition("</form>")[0]
    found = re.findall(r'<input\s+type="hidden"\s+name="([^"]+)"\s+value="([^"]*)"', form)
    return {html.unescape(k): html.unescape(v) for k, v in found if k != "csrfmiddlewaretoken"}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, row in PAGES.items()
        if row.open in (Open.OPERATORS, Open.ADMINS) and name not in ("dashboard:arm", "dashboard:disarm")
    ],
)
def test_every_write_waits_for_the_window(name: str, client) -> None:
    """A new view that acts is shut by itself; what only looks says so at its `require`."""
    row = PAGES[name]
    url = reverse(name, kwargs=dict(row.arguments))
    answer = client.post(url, {"form_number": "x", "step": "attach", "act": "delete", "words": "typed"})
    if answer.status_code == 405:
        assert row.method == "GET"
        return
    if name in {"dashboard:check-value", "dashboard:stop-sample"}:  # they change nothing in a queue
        assert answer.status_code in {200, 303}
        return
    assert answer.status_code == 403
    text = answer.content.decode()
    assert "read-only until you arm it" in text
    assert fields(text, ARM)["kept:words"] == "typed"
    assert get_store().audit.entries().entries == ()


@pytest.mark.parametrize(("name", "pattern"), OF_ADMIN, ids=lambda value: value if isinstance(value, str) else "")
def test_django_admin_waits_for_the_window_too(name: str, pattern: URLPattern, client) -> None:
    user = User.objects.get(username="root")
    typed = {"username": "eve", "password1": "zebra-stripes", "password2": "zebra-stripes", "usable_password": "true"}
    answer = client.post(of_admin(pattern, name, object_id=str(user.pk)), typed)
    if name in {"admin:login", "admin:logout"} or answer.status_code in {302, 405}:
        assert "read-only" not in answer.content.decode()
        return
    assert answer.status_code == 403, answer.content[:500]
    text = answer.content.decode()
    assert "read-only until you arm it" in text
    assert fields(text, ARM)["kept:username"] == "eve"
    assert "zebra" not in text
    assert User.objects.count() == 1


def test_the_refusal_says_what_of_a_form_with_a_password_is_kept(client) -> None:
    new = {"password1": "a-long-password-1", "password2": "a-long-password-1"}
    for path, name, kept in (
        ("/admin/auth/user/add/", {"username": "eve"}, True),
        (f"/admin/auth/user/{User.objects.get().pk}/password/", {}, False),
    ):
        page = client.post(path, {**name, **new}).content.decode()
        assert ("What you typed is kept." in page) is kept
        assert "Passwords have to be typed again." in page
    page = client.post("/admin/auth/group/add/", {"name": "them"}).content.decode()
    assert "What you typed is kept." in page
    assert "Passwords" not in page


def test_django_admin_changes_people_inside_of_the_window(client) -> None:
    eve = {"username": "eve", "password1": "zebra-stripes", "password2": "zebra-stripes", "usable_password": "true"}
    assert client.get("/admin/auth/user/add/").status_code == 200
    assert client.post("/admin/auth/user/add/", eve).status_code == 403
    client.post(ARM)
    assert client.post("/admin/auth/user/add/", eve).status_code == 302
    assert User.objects.filter(username="eve").exists()


def test_reading_and_forms_need_no_window(client) -> None:
    for path in ("/", "/queues/jobs/", "/queues/jobs/push/", "/queues/jobs/pause/"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "Read-only" in answer.content.decode()
    assert client.post("/queues/jobs/push/", {"check": "json", "value": "{}"}).status_code == 200


def push(client: Client) -> dict[str, str]:
    page = client.get("/queues/jobs/push/").content.decode()
    return fields(page, "/queues/jobs/push/") | {"value": '{"a": "<b>"}', "priority": "7"}


def test_what_was_typed_is_sent_after_arming(client) -> None:
    refused = client.post("/queues/jobs/push/", push(client)).content.decode()
    armed = client.post(ARM, fields(refused, ARM))
    assert armed.status_code == 200
    assert get_store().queue("jobs").depth() == 0
    sent = client.post("/queues/jobs/push/", fields(armed.content.decode(), "/queues/jobs/push/"))
    assert sent.status_code == 303
    (item,) = get_store().queue("jobs").items(limit=5).items
    assert (item.priority, item.value) == (7, b'{"a": "<b>"}')


def test_the_window_is_told_counted_down_shut_and_audited(client) -> None:
    assert client.post(ARM).status_code == 303
    text = client.get("/").content.decode()
    assert "Disarm" in text
    assert re.search(r'data-armed="yes".*?data-countdown', text, re.DOTALL)
    assert client.post("/queues/jobs/push/", push(client)).status_code == 303
    assert client.post("/disarm/").status_code == 303
    assert client.post("/queues/jobs/push/", push(client)).status_code == 403
    entries = [(entry.actor, entry.verb) for entry in get_store().audit.entries().entries]
    assert entries == [("root", "disarm"), ("root", "push"), ("root", "arm")]


def test_the_window_is_of_this_browser_and_ends_by_itself_and_with_the_session(client, person) -> None:
    client.post(ARM)
    other = Client()
    other.force_login(person(Role.OPERATOR, "other"))
    assert other.post("/queues/jobs/push/", push(other)).status_code == 403
    session = client.session
    now = datetime.now(UTC)
    for until, good in ((now + timedelta(minutes=14), True), (now, False), (now + timedelta(minutes=16), False)):
        session["armed_until"] = int(until.timestamp())
        session.save()
        assert (client.post("/queues/jobs/push/", push(client)).status_code == 303) is good
    session["armed_until"] = "for ever"
    session.save()
    assert client.post("/queues/jobs/push/", push(client)).status_code == 403
    client.post(ARM)
    client.post("/accounts/logout/")
    client.force_login(person(Role.ADMIN, "root2"))
    assert client.post("/queues/jobs/push/", push(client)).status_code == 403


@pytest.mark.parametrize("environment", ["production", "Prod EU", "live"])
def test_production_is_armed_by_typing_its_name(environment: str, client, settings) -> None:
    settings.PQADMIN_ENVIRONMENT = environment
    for typed in ("", environment.swapcase()):
        answer = client.post(ARM, {"environment": typed, "kept:value": "mine", "to": "/new/"})
        assert answer.status_code == 422
        assert fields(answer.content.decode(), ARM) == {"kept:value": "mine", "to": "/new/"}
    assert client.post("/queues/jobs/push/", push(client)).status_code == 403
    assert client.post(ARM, {"environment": environment}).status_code == 303
    assert client.post("/queues/jobs/push/", push(client)).status_code == 303


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:x"])
def test_arming_leads_to_no_other_site(elsewhere: str, client) -> None:
    assert client.post(ARM, {"to": elsewhere}).url == "/"
    kept = client.post(ARM, {"to": elsewhere, "kept:a": "b"})
    assert (kept.status_code, kept.url) == (303, "/")
    assert client.post("/disarm/", {"to": elsewhere}).url == "/"


def test_without_the_setting_nothing_has_to_be_armed(client, settings) -> None:
    settings.PQADMIN_ARM_MINUTES = 0
    assert "Read-only" not in client.get("/").content.decode()
    assert client.post("/queues/jobs/push/", push(client)).status_code == 303
    assert client.get(ARM).status_code == 302


def test_viewers_are_not_asked_to_arm(visitor, jobs) -> None:
    viewer = visitor(Role.VIEWER)
    assert "Read-only" not in viewer.get("/").content.decode()
    assert viewer.get(ARM).status_code == 403


def test_the_environment_is_named_by_word_in_badge_and_title(client, settings) -> None:
    settings.PQADMIN_ENVIRONMENT = "production <eu>"
    text = client.get("/").content.decode()
    assert " · production &lt;eu&gt;</title>" in text
    assert re.search(r'data-environment="production"', text)
    assert re.search(r'class="env"[^>]*>.*?production\s+&lt;eu&gt;</span>', text, re.DOTALL)


#: What marks a form as one that only looks, in some view or other.
LOOKS = ({"check": "1"}, {"check": "json"}, {"look": "1"}, {"preview": "1"}, {"step": "look"}, {"act": ""})
SECRET = b'{"password": "hunter2", "to": "ann"}'


@pytest.mark.parametrize("looks", LOOKS, ids=str)
@pytest.mark.parametrize("path", ["edit/", "reveal/"])
def test_no_form_that_only_looks_reveals_a_value(path: str, looks: dict[str, str], client) -> None:
    item = get_store().queue("jobs").push(SECRET, priority=5)
    here = f"/queues/jobs/items/{item.id}/{path}"
    for more in ({}, {"value": "{}"}, {"download": "1"}):
        answer = client.post(here, {"reveal": "1", **looks, **more})
        assert "hunter2" not in answer.content.decode()
    assert get_store().audit.entries().entries == ()
    client.post(ARM)
    assert "hunter2" in client.post(f"/queues/jobs/items/{item.id}/edit/", {"reveal": "1"}).content.decode()
    assert [entry.verb for entry in get_store().audit.entries().entries] == ["reveal", "arm"]


FORMS = ("new/", "queues/jobs/push/", "queues/jobs/pause/", "queues/jobs/rename/", "queues/jobs/delete/",
         "queues/jobs/settings/", "queues/jobs/purge/", "queues/jobs/push/many/", "queues/jobs/items/ITEM/",
         "queues/jobs/items/ITEM/edit/", "queues/jobs/act/?act=delete&ids=ITEM", "queues/jobs/", "people/new/",
         "boards/new/", "attach/")  # fmt: skip


@pytest.mark.parametrize("path", FORMS)
def test_no_sent_form_becomes_harmless_by_a_word_more(path: str, client) -> None:
    """Every form of a page is sent as it is, with each of the words with which a page is only read."""
    item = get_store().queue("jobs").push(b"before", priority=5)
    shown = client.get(f"/{path.replace('ITEM', item.id)}")
    assert shown.status_code == 200
    page = shown.content.decode()
    typed = dict.fromkeys(("title", "note", "reason", "value"), "x")
    typed |= {"name": "eve", "role": "viewer", "priority": "1", "confirm": "jobs", "new": "renamed", "kind": "fifo"}
    for action in {html.unescape(found) for found in re.findall(r'<form[^>]*method="post"[^>]*action="([^"]+)"', page)}:
        if action.startswith((ARM, "/accounts/", "/theme", "/language", "/time-zone", "/favorites")):
            continue
        for looks in LOOKS:
            client.post(action, typed | fields(page, html.escape(action)) | looks)
    assert get_store().audit.entries().entries == ()
    assert [(found.id, found.value) for found in get_store().queue("jobs").items(limit=5).items] == [
        (item.id, b"before")
    ]
    assert get_store().directory().keys() == {"jobs"}
    assert User.objects.count() == 1
