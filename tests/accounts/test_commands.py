"""`create_user` and `reset_password`."""

import io
import json

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from pqadmin.accounts.authentication import digest
from pqadmin.accounts.models import Token
from pqadmin.accounts.roles import Role, role_of
from pqadmin.accounts.scope import Scope, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def someone(person) -> None:
    """Make the data older than its first start."""
    person(Role.ADMIN, "root")


def run(*arguments: str, stdin: str = "", monkeypatch: pytest.MonkeyPatch | None = None) -> str:
    if monkeypatch is not None:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_created_user_can_log_in_with_the_printed_password(role: str) -> None:
    said = run("create_user", "ann", "--role", role)
    assert f"Created ann ({role})." in said
    password = said.split("Password, shown once: ")[1].strip()
    assert Client().login(username="ann", password=password)
    assert role_of(User.objects.get(username="ann")) is Role(role)


def test_grants_are_given_with_the_user() -> None:
    said = run("create_user", "ann", "--role", "none", "--grant", "orders:*=operator", "--grant", "mail=viewer")
    assert "Granted operator on orders:*." in said
    scope = scope_of(User.objects.get(username="ann"))
    assert scope == Scope.of(Role.NONE, [("orders:*", Role.OPERATOR), ("mail", Role.VIEWER)])


def test_what_is_made_for_users_and_programs_is_told_as_json() -> None:
    ann = json.loads(run("create_user", "ann", "--role", "viewer", "--grant", "orders:*=operator", "--json"))
    assert Client().login(username="ann", password=ann.pop("password"))
    assert ann == {"user": "ann", "role": "viewer", "grants": {"orders:*": "operator"}}
    changed = json.loads(run("reset_password", "ann", "--jsonl"))
    assert Client().login(username=changed["user"], password=changed["password"])
    made = json.loads(run("create_token", "web", "--queues", "orders:*", "--verbs", "push", "--json"))
    assert Token.objects.get(digest=digest(made.pop("secret"))).name == "web"
    assert [made] == json.loads(run("tokens", "--json"))["tokens"]
    assert json.loads(run("revoke_token", "web", "--json")) == {"token": "web"}


@pytest.mark.parametrize("grant", ["orders:*", "orders:*=admin", "a b=viewer", "=viewer"])
def test_an_invalid_grant_creates_no_person(grant: str) -> None:
    with pytest.raises(CommandError, match="--grant"):
        run("create_user", "ann", "--role", "viewer", "--grant", grant)
    assert not User.objects.filter(username="ann").exists()


def test_the_password_can_come_from_standard_input(monkeypatch) -> None:
    said = run(
        "create_user", "ann", "--role", "viewer", "--password-stdin", stdin="a long sentence\n", monkeypatch=monkeypatch
    )
    assert "Password" not in said
    assert Client().login(username="ann", password="a long sentence")


@pytest.mark.parametrize("stdin", ["", "short\n", "password123\n"])
def test_a_weak_password_creates_no_person(stdin: str, monkeypatch) -> None:
    with pytest.raises(CommandError):
        run("create_user", "ann", "--role", "viewer", "--password-stdin", stdin=stdin, monkeypatch=monkeypatch)
    assert not User.objects.filter(username="ann").exists()


def test_a_name_that_is_taken_is_refused(monkeypatch) -> None:
    with pytest.raises(CommandError, match="exists"):
        run("create_user", "root", "--role", "viewer")
    assert role_of(User.objects.get(username="root")) is Role.ADMIN


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 151, "a\nb"])
def test_a_name_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(CommandError):
        run("create_user", name, "--role", "viewer")
    assert User.objects.count() == 1


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(CommandError, match="invalid choice"):
        run("create_user", "ann", "--role", "owner")


def test_reset_password_prints_a_new_one_and_ends_sessions(person) -> None:
    user = person(Role.VIEWER, "ann")
    client = Client()
    client.force_login(user)
    assert client.get("/").status_code == 200
    password = run("reset_password", "ann").split("Password, shown once: ")[1].strip()
    assert client.get("/").status_code == 302
    assert Client().login(username="ann", password=password)


def test_reset_password_says_that_the_user_is_deactivated(person) -> None:
    person(Role.VIEWER, "ann")
    assert "deactivated" not in run("reset_password", "ann")
    User.objects.filter(username="ann").update(is_active=False)
    assert "ann is deactivated and cannot sign in" in run("reset_password", "ann")


def test_reset_password_of_an_unknown_person() -> None:
    with pytest.raises(CommandError, match="No user is named 'bob'"):
        run("reset_password", "bob")
