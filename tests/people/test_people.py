"""People: made, given roles and grants, deactivated; every change at once, audited, and safe from accidents."""

import re

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.db.models.signals import pre_save
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.rights import Right, Role
from pqadmin.accounts.scope import Scope, scope_of
from pqadmin.people import person_changes
from pqadmin.site_audit import Author
from pqadmin.store import get_store
from tests.accounts.conftest import PASSWORD
from tests.sites import failing_commits

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(person, jobs) -> Client:
    client = Client()
    client.force_login(person(Role.ADMIN, "root"))
    return client


@pytest.fixture
def ann(person) -> User:
    return person(Role.VIEWER, "ann")


def url(name: str, *arguments: int) -> str:
    return reverse(f"people:{name}", args=arguments)


def number(client: Client, page: str, action: str) -> str:
    """Return the one-time number of the form that posts to an address."""
    text = client.get(page).content.decode()
    form = text[text.index(f'action="{action}"') :]
    found = re.search(r'name="form_number" value="([^"]+)"', form)
    return found.group(1)


def chosen(answer) -> str:
    """Return the role that a form has chosen."""
    return re.search(r'name="role" value="([a-z]+)"[^>]* checked', answer.content.decode()).group(1)


def send(client: Client, page: str, action: str, **fields: str):
    return client.post(action, {"form_number": number(client, page, action), **fields})


def scope(user: User) -> Scope:
    return scope_of(User.objects.get(pk=user.pk))


def told() -> list[tuple[str, str, object, object]]:
    entries = get_store().audit.entries().entries
    return [(entry.actor, entry.verb, entry.before, entry.after) for entry in entries]


def test_the_list_shows_roles_grants_and_sign_ins(root, granted, ann) -> None:
    granted(Role.NONE, {"orders:*": Role.OPERATOR}, "bob")
    Client().post("/accounts/login/", {"username": "ann", "password": PASSWORD})
    text = root.get(url("people")).content.decode()
    lines = {name: re.search(rf">{name}</bdi>.*?</tr>", text, re.DOTALL).group() for name in ("ann", "bob", "root")}
    assert "<code>orders:*</code> <small>operator</small>" in lines["bob"]
    assert "never" in lines["bob"]
    assert "viewer" in lines["ann"]
    assert "never" not in lines["ann"]
    assert "admin" in lines["root"]
    assert ">ann</bdi>" not in root.get(url("people"), {"q": "bo"}).content.decode()


def test_the_list_asks_as_much_for_many_as_for_few(root, granted, django_assert_max_num_queries) -> None:
    for n in range(60):
        granted(Role.VIEWER, {"orders:*": Role.OPERATOR}, f"p{n:02}")
    with django_assert_max_num_queries(6):
        page = root.get(url("people")).content.decode()
    assert page.count("<code>orders:*</code>") == 50
    following = re.search(r'rel="next"\s+href="([^"]+)"', page).group(1)
    assert "p59" in root.get(url("people") + following).content.decode()


def test_a_created_person_signs_in_with_the_password_that_is_shown_once(root) -> None:
    page = url("new")
    answer = send(root, page, page, name="eve", role="none", glob="j*", glob_role="operator")
    password = re.search(r'id="password"[^>]*>([^<]+)<', answer.content.decode()).group(1)
    assert answer["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    eve = User.objects.get(username="eve")
    assert scope(eve) == Scope.of(Role.NONE, [("j*", Role.OPERATOR)])
    client = Client()
    assert client.post("/accounts/login/", {"username": "eve", "password": password}).status_code == 302
    assert client.get("/queues/jobs/").status_code == 200
    assert password not in root.get(url("person", eve.pk)).content.decode()
    after = {"person": "eve", "role": "none", "grants": {"j*": "operator"}}
    assert told()[0] == ("root", "create_person", None, after)


@pytest.mark.parametrize("fields", [{"name": ""}, {"name": "a b"}, {"name": "ann"}, {"name": "x", "glob": "a/b"}])
def test_an_invalid_person_is_not_made_and_what_was_typed_stays(root, ann, fields) -> None:
    before = set(User.objects.values_list("username", flat=True))
    answer = send(root, url("new"), url("new"), **{"role": "operator", **fields})
    assert answer.status_code == 422
    assert chosen(answer) == "operator"
    assert set(User.objects.values_list("username", flat=True)) == before
    assert told() == []


def test_a_preview_names_the_queues_that_match_now(root, ann) -> None:
    get_store().create_queue("mail")
    text = root.get(url("person", ann.pk), {"glob": "j*", "role": "operator"}).content.decode()
    matching = text[text.index('id="matching"') :].partition("</div>")[0]
    assert "1 queue now" in matching
    assert ">jobs<" in matching
    assert ">mail<" not in matching
    assert '<option value="operator" selected>' in text


def test_grants_are_given_changed_and_taken_away_at_once(root, ann) -> None:
    theirs = Client()
    theirs.force_login(ann)
    page, push = url("person", ann.pk), "/queues/jobs/push/"
    assert theirs.get(push).status_code == 403
    assert send(root, page, url("add-grant", ann.pk), glob="jo*", role="operator").status_code == 303
    assert theirs.get(push).status_code == 200
    assert send(root, page, url("add-grant", ann.pk), glob="jo*", role="viewer").status_code == 303
    assert theirs.get(push).status_code == 403
    grant = Grant.objects.get()
    assert send(root, page, url("remove-grant", ann.pk, grant.pk)).status_code == 303
    assert not Grant.objects.exists()
    assert [entry[1] for entry in told()] == ["remove_grant", "add_grant", "add_grant"]
    assert told()[1][2:] == (
        {"person": "ann", "queues": "jo*", "role": "operator"},
        {"person": "ann", "queues": "jo*", "role": "viewer"},
    )


@pytest.mark.parametrize("fields", [{"glob": "a b", "role": "viewer"}, {"glob": "a*", "role": "admin"}])
def test_a_grant_that_cannot_be_is_refused_with_what_was_typed(root, ann, fields) -> None:
    answer = send(root, url("person", ann.pk), url("add-grant", ann.pk), **fields)
    assert answer.status_code == 422
    assert f'value="{fields["glob"]}"' in answer.content.decode()
    assert not Grant.objects.exists()
    assert told() == []


def test_a_role_changes_at_once_and_an_admin_is_made_by_typing_the_name(root, ann) -> None:
    page, action = url("person", ann.pk), url("role", ann.pk)
    assert send(root, page, action, role="operator").status_code == 303
    assert scope(ann) == Scope.of(Role.OPERATOR)
    for confirm in ("", "Ann"):
        assert send(root, page, action, role="admin", confirm=confirm).status_code == 422
    assert scope(ann) == Scope.of(Role.OPERATOR)
    assert send(root, page, action, role="admin", confirm="ann").status_code == 303
    assert scope(ann).can(Right.ADMIN, "any")
    assert told()[0][2:] == ({"person": "ann", "role": "operator"}, {"person": "ann", "role": "admin"})


def test_the_last_admin_stays_one(root, person) -> None:
    me = User.objects.get(username="root")
    page = url("person", me.pk)
    assert send(root, page, url("role", me.pk), role="operator").status_code == 422
    assert send(root, page, url("active", me.pk), active="no").status_code == 409
    assert scope(me).can(Right.ADMIN, "any")
    retired = person(Role.ADMIN, "retired")
    retired.is_active = False
    retired.save()
    assert send(root, page, url("role", me.pk), role="operator").status_code == 422
    person(Role.ADMIN, "other")
    assert send(root, page, url("role", me.pk), role="operator").status_code == 303
    assert root.get(page).status_code == 403


def test_a_person_that_is_in_the_group_of_admins_is_one_without_being_a_superuser(root, ann) -> None:
    """As a person that Django's admin, a script or an older table put there."""
    ann.groups.set([Group.objects.get_or_create(name="admin")[0]])
    me, page = User.objects.get(username="root"), url("person", ann.pk)
    text = root.get(url("people")).content.decode()
    assert "admin" in re.search(r">ann</bdi>.*?</tr>", text, re.DOTALL).group()
    assert chosen(root.get(page)) == "admin"
    theirs = Client()
    theirs.force_login(ann)
    mine = url("person", me.pk)
    assert send(theirs, mine, url("active", me.pk), active="no").status_code == 303
    assert send(theirs, page, url("active", ann.pk), active="no").status_code == 409
    assert send(theirs, page, url("role", ann.pk), role="viewer").status_code == 422
    assert send(theirs, mine, url("role", me.pk), role="viewer").status_code == 303
    assert theirs.get(page).status_code == 200


def test_the_role_of_a_person_deactivated_is_what_was_given(root, person) -> None:
    away = person(Role.OPERATOR, "away")
    User.objects.filter(pk=away.pk).update(is_active=False)
    page = url("person", away.pk)
    assert send(root, page, url("role", away.pk), role="none").status_code == 303
    assert told()[0][2] == {"person": "away", "role": "operator"}


def test_the_same_name_twice_at_once_is_the_fields_error(root) -> None:
    """The other one comes in between the look and the insert; the form can be sent again with another name."""

    def other(instance: User, **_named: object) -> None:
        if instance.username == "eve":
            User.objects.bulk_create([User(username="eve")])

    page = url("new")
    mine = number(root, page, page)
    fields = {"form_number": mine, "role": "none"}
    pre_save.connect(other, sender=User)
    try:
        answer = root.post(page, {**fields, "name": "eve"})
    finally:
        pre_save.disconnect(other, sender=User)
    assert answer.status_code == 422
    assert "already exists" in answer.content.decode()
    assert told() == []
    assert root.post(page, {**fields, "name": "eva"}).status_code == 200


def test_a_deactivated_person_is_out_until_reactivated(root, ann) -> None:
    theirs, page = Client(), url("person", ann.pk)
    theirs.force_login(ann)
    assert send(root, page, url("active", ann.pk), active="no").status_code == 303
    assert theirs.get("/").status_code == 302
    assert Client().post("/accounts/login/", {"username": "ann", "password": PASSWORD}).status_code == 422
    assert send(root, page, url("active", ann.pk), active="yes").status_code == 303
    assert theirs.get("/").status_code == 302  # a session does not come back
    assert root.get("/").status_code == 200
    assert Client().post("/accounts/login/", {"username": "ann", "password": PASSWORD}).status_code == 302
    assert [entry[1] for entry in told()] == ["reactivate_person", "deactivate_person"]


def test_a_deactivation_reads_no_sessions_and_a_reactivation_ends_those_of_the_person(ann, jobs) -> None:
    """Other changes of the tables wait meanwhile, and a site may have thousands of sessions."""
    for n in (0, 1000):  # long ones are stored compressed
        theirs = Client()
        theirs.force_login(ann)
        (session := theirs.session)["filler"] = "a" * n
        session.save()
    other = Client()
    other.force_login(User.objects.create_user("bob"))
    Session.objects.create(session_key="broken", session_data=":::", expire_date=timezone.now())
    with CaptureQueriesContext(connection) as asked:
        person_changes.set_active(ann, False, by=Author(name="root"))
    assert not any("django_session" in each["sql"] for each in asked)
    person_changes.set_active(ann, True, by=Author(name="root"))
    assert set(Session.objects.values_list("session_key", flat=True)) == {"broken", other.session.session_key}


def test_a_new_password_ends_the_old_one_and_every_session(root, ann) -> None:
    theirs = Client()
    theirs.force_login(ann)
    answer = send(root, url("person", ann.pk), url("password", ann.pk))
    password = re.search(r'id="password"[^>]*>([^<]+)<', answer.content.decode()).group(1)
    assert theirs.get("/").status_code == 302
    assert not Client().login(username="ann", password=PASSWORD)
    assert Client().login(username="ann", password=password)
    assert password not in str(told())


def test_a_form_works_once(root, ann) -> None:
    page, action = url("person", ann.pk), url("password", ann.pk)
    mine = number(root, page, action)
    assert root.post(action, {"form_number": mine}).status_code == 200
    held = User.objects.get(pk=ann.pk).password
    assert root.post(action, {"form_number": mine}).status_code == 303
    assert root.post(action, {"form_number": "made up"}).status_code == 409
    assert User.objects.get(pk=ann.pk).password == held


def test_nothing_changes_while_the_audit_cannot_be_written(root, ann, monkeypatch) -> None:
    from queues.errors import StoreUnreachable

    page, action = url("person", ann.pk), url("role", ann.pk)
    mine = number(root, page, action)
    store = get_store()

    def away(*_arguments: object, **_named: object) -> None:
        raise StoreUnreachable("away")

    monkeypatch.setattr(type(store), "transact", away)
    assert root.post(action, {"form_number": mine, "role": "operator"}).status_code == 503
    assert scope(ann) == Scope.of(Role.VIEWER)


def test_a_change_is_made_after_the_audit_gave_no_answer(root, ann, monkeypatch) -> None:
    from queues.errors import OutcomeUnknown

    page, action = url("person", ann.pk), url("role", ann.pk)
    store, transact = get_store(), type(get_store()).transact

    def committed_without_an_answer(*arguments, **named) -> None:
        transact(*arguments, **named)
        raise OutcomeUnknown("away")

    with monkeypatch.context() as broken:
        broken.setattr(type(store), "transact", committed_without_an_answer)
        refused = root.post(action, {"form_number": number(root, page, action), "role": "operator"})
    assert refused.status_code == 503
    assert "Nothing was changed." in refused.content.decode()
    again = re.search(rf'action="{action}".*?name="form_number" value="([^"]+)"', refused.content.decode(), re.DOTALL)
    assert root.post(action, {"form_number": again.group(1), "role": "operator"}).status_code == 303
    assert scope(ann) == Scope.of(Role.OPERATOR)


def test_changes_of_people_are_in_the_audit_of_admins_alone(root, ann) -> None:
    send(root, url("person", ann.pk), url("add-grant", ann.pk), glob="*", role="operator")
    theirs = Client()
    theirs.force_login(User.objects.get(pk=ann.pk))
    for page in ("/audit/", "/audit/export/?format=ndjson"):
        assert ("granted queues" in read(root, page)) or ("add_grant" in read(root, page))
        assert "grant" not in read(theirs, page).replace("can grant you", "").partition("<tbody>")[2]


def read(client: Client, page: str) -> str:
    answer = client.get(page)
    return (b"".join(answer) if answer.streaming else answer.content).decode()


def test_ones_own_page_says_what_one_may_do_on_which_queues(granted, jobs) -> None:
    get_store().create_queue("mail")
    client = Client()
    client.force_login(granted(Role.NONE, {"j*": Role.OPERATOR}))
    text = client.get(url("me")).content.decode()
    assert re.search(r">jobs</bdi></a></td>\s*<td[^>]*>operator<", text)
    assert ">mail<" not in text
    assert "<code>j*</code>" in text


def test_a_person_with_nothing_is_told_that_an_admin_can_change_that(visitor, jobs) -> None:
    text = visitor(Role.NONE).get(url("me")).content.decode()
    assert "An admin can give you a role" in text
    assert ">jobs<" not in text


@pytest.mark.parametrize("name", ["root\u3164", "\u3164", "an\ufe0fn", "root\u115f"])
def test_no_person_gets_a_name_that_cannot_be_seen(root, name: str) -> None:
    refused = send(root, url("new"), url("new"), name=name, role="viewer")
    assert refused.status_code == 422
    assert "characters that cannot be seen" in refused.content.decode()
    typed = {
        "username": name,
        "password1": "zebra-stripes-9",
        "password2": "zebra-stripes-9",
        "usable_password": "true",
    }
    refused = root.post("/admin/auth/user/add/", typed)
    assert "characters that cannot be seen" in refused.content.decode()
    with pytest.raises(CommandError, match="characters that cannot be seen"):
        call_command("create_user", name, role="viewer")
    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_form_whose_commit_failed_is_executed_when_it_is_sent_again(root, ann) -> None:
    page, action = url("person", ann.pk), url("active", ann.pk)
    form = {"form_number": number(root, page, action), "active": "no"}
    with failing_commits("auth_user"), pytest.raises(IntegrityError):
        root.post(action, form)
    assert User.objects.get(pk=ann.pk).is_active
    root.post(action, form)
    assert not User.objects.get(pk=ann.pk).is_active


class Crash(BaseException):
    """The end of the process between the audit record of a change and the commit of the site's tables."""


@pytest.mark.django_db(transaction=True)
def test_a_change_that_a_crash_undid_is_made_when_its_form_is_sent_again(root, ann) -> None:
    page, action = url("person", ann.pk), url("active", ann.pk)
    form = {"form_number": number(root, page, action), "active": "no"}
    with pytest.raises(Crash), transaction.atomic():
        root.post(action, form)
        assert [verb for _, verb, _, _ in told()] == ["deactivate_person"]
        raise Crash
    assert User.objects.get(pk=ann.pk).is_active
    root.post(action, form)
    assert not User.objects.get(pk=ann.pk).is_active
    root.post(action, form)
    assert [verb for _, verb, _, _ in told()] == ["deactivate_person"] * 2
