"""What is changed in Django's admin is in the audit, as every other act of a person; or it is not done."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from pqadmin import site_audit
from pqadmin.accounts.rights import Role
from pqadmin.people import person_changes
from pqadmin.site_audit import Author
from pqadmin.store import get_store
from queues.errors import StoreError
from queues.kv.errors import StoreUnavailable

pytestmark = pytest.mark.django_db

PASSWORD = "zebra-stripes-9"


@pytest.fixture
def root(person, jobs) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(person(Role.ADMIN, "root"))
    return client


def told() -> list[tuple[str, Any, Any]]:
    entries = get_store().audit.entries().entries
    assert {(entry.actor, entry.via) for entry in entries} <= {("root", "web")}
    return [(entry.verb, entry.before and dict(entry.before), entry.after and dict(entry.after)) for entry in entries]


def add(root: Client, name: str = "eve") -> User:
    typed = {"username": name, "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    assert root.post("/admin/auth/user/add/", typed).status_code == 302
    return User.objects.get(username=name)


def shown(root: Client, user: User) -> Any:
    """Return the form of a person as the page shows it."""
    return root.get(f"/admin/auth/user/{user.pk}/change/").context["adminform"].form


def change(root: Client, user: User, form: Any = None, **more: Any):
    """Send the form of a person as it is or was shown, with these changes."""
    form = form or shown(root, user)
    sent: dict[str, Any] = {
        "username": user.username,
        "is_active": "on",
        "first_name": "",
        "last_name": "",
        "email": "",
        "stamp": form["stamp"].value(),
    }
    joined = form.initial["date_joined"]
    sent |= {"date_joined_0": f"{joined:%Y-%m-%d}", "date_joined_1": f"{joined:%H:%M:%S}"}
    sent |= {"initial-date_joined_0": sent["date_joined_0"], "initial-date_joined_1": sent["date_joined_1"]}
    sent |= more
    return root.post(f"/admin/auth/user/{user.pk}/change/", {k: v for k, v in sent.items() if v is not None})


def delete_selected(root: Client, *people: User):
    """Send the form that confirms the deletion of some people."""
    keys = [each.pk for each in people]
    return root.post("/admin/auth/user/", {"action": "delete_selected", "_selected_action": keys, "post": "yes"})


def test_a_session_of_before_a_deactivation_does_not_come_back(root: Client) -> None:
    eve, theirs = add(root), Client()
    theirs.force_login(eve)
    assert change(root, eve, is_active=None).status_code == 302
    assert change(root, eve).status_code == 302
    assert User.objects.get(pk=eve.pk).is_active
    assert theirs.get("/").status_code == 302


@pytest.mark.parametrize("act", ["deactivate", "demote", "regroup"])
def test_a_form_of_before_another_change_gives_nothing_back(root: Client, person, act: str) -> None:
    eve = person(Role.ADMIN, "eve")
    form = shown(root, eve)
    if act == "deactivate":
        person_changes.set_active(eve, False, by=Author(name="root"))
    elif act == "demote":
        person_changes.change_role(eve, Role.NONE, by=Author(name="root"))
    else:
        eve.groups.set([Group.objects.get_or_create(name="night")[0]])
    before = User.objects.values("is_active", "is_superuser", "is_staff", "email", "groups").get(pk=eve.pk)
    sent = {"is_superuser": "on", "is_staff": "on", "groups": [Group.objects.get(name="admin").pk], "email": "e@x.org"}
    answer = change(root, eve, form, **sent)
    assert answer.status_code == 200
    assert "was changed meanwhile. Nothing was saved" in answer.content.decode()
    assert User.objects.values("is_active", "is_superuser", "is_staff", "email", "groups").get(pk=eve.pk) == before
    assert "change_person" not in [verb for verb, *_ in told()]


def test_a_form_stays_good_while_its_person_signs_in(root: Client) -> None:
    eve = add(root)
    form = shown(root, eve)
    assert Client().login(username="eve", password=PASSWORD)
    assert change(root, eve, form, email="e@x.org").status_code == 302
    eve.refresh_from_db()
    assert (eve.email, eve.last_login is None) == ("e@x.org", False)


def test_a_person_that_is_made_changed_and_deleted(root: Client) -> None:
    eve = add(root)
    assert told() == [("create_person", None, {"person": "eve", "username": "eve"})]
    viewers = Group.objects.get_or_create(name="viewer")[0]
    assert change(root, eve, groups=[viewers.pk], is_superuser="on", username="eva").status_code == 302
    verb, before, after = told()[0]
    assert verb == "change_person"
    assert {"person": "eve", "username": "eve", "groups": [], "is_superuser": False}.items() <= before.items()
    assert {"person": "eva", "username": "eva", "groups": ["viewer"], "is_superuser": True}.items() <= after.items()
    assert root.post(f"/admin/auth/user/{eve.pk}/delete/", {"post": "yes"}).status_code == 302
    assert told()[0] == ("delete_person", {"person": "eva", "groups": ["viewer"], "is_superuser": True}, None)
    assert len(told()) == 3


def test_people_that_are_deleted_together(root: Client) -> None:
    assert delete_selected(root, *[add(root, name) for name in ("ann", "bob")]).status_code == 302
    assert User.objects.count() == 1
    deleted = [(verb, before["person"]) for verb, before, _ in told()[:2]]
    assert sorted(deleted) == [("delete_person", "ann"), ("delete_person", "bob")]


def test_a_new_password_is_told_and_never_its_value(root: Client) -> None:
    eve = add(root)
    typed = {"password1": "another-zebra-7", "password2": "another-zebra-7", "usable_password": "true"}
    assert root.post(f"/admin/auth/user/{eve.pk}/password/", {**typed, "set-password": "1"}).status_code == 302
    assert told()[0] == ("reset_password", None, {"person": "eve"})
    assert root.post(f"/admin/auth/user/{eve.pk}/password/", {**typed, "password2": "x"}).status_code == 200
    assert len(told()) == 2, "what was refused is no act"
    kept = str(get_store().audit.entries().entries)
    assert "zebra" not in kept
    assert User.objects.get(pk=eve.pk).password not in kept


def test_changes_of_groups_are_audited(root: Client) -> None:
    may = Permission.objects.order_by("pk")[0]
    assert root.post("/admin/auth/group/add/", {"name": "night", "permissions": [may.pk]}).status_code == 302
    night = Group.objects.get(name="night")
    root.post(f"/admin/auth/group/{night.pk}/change/", {"name": "day"})
    root.post(f"/admin/auth/group/{night.pk}/delete/", {"post": "yes"})
    assert told() == [
        ("delete_group", {"group": "day"}, None),
        (
            "change_group",
            {"group": "night", "name": "night", "permissions": [str(may)]},
            {"group": "day", "name": "day", "permissions": []},
        ),
        ("create_group", None, {"group": "night", "name": "night", "permissions": [str(may)]}),
    ]


def test_the_last_admins_stay_admins(root: Client, person: Callable[..., User]) -> None:
    """As at /people/: without an admin no user could get a role."""
    me, why = User.objects.get(username="root"), "Without an admin no user could get a role."
    person(Role.ADMIN, "away").groups.clear()
    User.objects.filter(username="away").update(is_active=False)
    kept = {"is_superuser": "on", "is_staff": "on"}

    def refused() -> None:
        for answer in (
            change(root, me),
            change(root, me, **kept, is_active=None),
            root.post(f"/admin/auth/user/{me.pk}/delete/", {"post": "yes"}),
            delete_selected(root, me),
        ):
            assert answer.status_code == 200
            assert why in answer.content.decode()
        assert told() == []
        assert User.objects.get(pk=me.pk).is_superuser

    refused()
    other = person(Role.ADMIN, "other")
    answer = delete_selected(root, me, other)
    assert why in answer.content.decode(), "both at once"
    User.objects.filter(pk=other.pk).update(is_active=False)
    refused()
    assert change(root, me, **kept, first_name="R").status_code == 302
    User.objects.filter(pk=other.pk).update(is_active=True)
    assert delete_selected(root, me).status_code == 302
    assert list(User.objects.filter(is_active=True)) == [other]


def test_what_the_audit_cannot_be_told_is_not_done(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    eve = add(root)
    before = User.objects.values().get(pk=eve.pk)

    def away() -> None:
        raise StoreUnavailable("The store is away.")

    monkeypatch.setattr(site_audit, "get_store", away)
    typed = {"password1": "another-zebra-7", "password2": "another-zebra-7", "usable_password": "true"}
    for answer in (
        root.post("/admin/auth/user/add/", {**typed, "username": "ann"}),
        root.post(f"/admin/auth/user/{eve.pk}/password/", {**typed, "set-password": "1"}),
        change(root, eve, is_superuser="on"),
        root.post(f"/admin/auth/user/{eve.pk}/delete/", {"post": "yes"}),
        delete_selected(root, eve),
    ):
        assert answer.status_code == 503
    assert issubclass(StoreUnavailable, StoreError)
    assert User.objects.values().get(pk=eve.pk) == before
    assert User.objects.count() == 2


def test_only_admins_see_these_acts(root: Client, visitor) -> None:
    zoe = add(root, "zoe-quist")
    root.post(f"/admin/auth/user/{zoe.pk}/delete/", {"post": "yes"})
    assert root.get("/audit/").content.decode().count("zoe-quist") >= 2
    assert "zoe-quist" not in visitor(Role.OPERATOR).get("/audit/").content.decode()
