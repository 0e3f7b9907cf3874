"""Tokens: made and revoked on the page and by command, shown once, audited, and of their owner alone."""

import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db.models.signals import pre_save
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from pqadmin import token_lifecycle
from pqadmin.accounts.authentication import digest
from pqadmin.accounts.caller import QUEUE_VERBS
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Role
from pqadmin.store import get_store
from tests.people.test_people import number, told
from tests.sites import site_store

pytestmark = pytest.mark.django_db

LIST, NEW = "/tokens/", "/tokens/new/"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, settings, monkeypatch):
    with site_store(f"lmdb:{tmp_path / 'store'}", settings, monkeypatch) as opened:
        opened.create_queue("jobs")
        opened.create_queue("mail")
        yield opened


@pytest.fixture
def sign_in(person):
    def make(role: Role, name: str) -> Client:
        client = Client()
        client.force_login(person(role, name))
        return client

    return make


def create(client: Client, **fields: object):
    given = {"name": "ci", "verbs": ["read", "push"], "queues": "jobs, orders:*", "days": "30", "rate": ""}
    return client.post(NEW, {"form_number": number(client, NEW, NEW), **given, **fields})


def secret_of(answer) -> str:
    return re.search(r'id="token"[^>]*>([^<]+)<', answer.content.decode()).group(1)


def revoke(client: Client, token: Token):
    url = reverse("people:revoke-token", args=[token.pk])
    return client.post(url, {"form_number": number(client, LIST, url)}, follow=True)


def test_a_token_is_shown_once_and_kept_as_a_hash(sign_in) -> None:
    ann = sign_in(Role.VIEWER, "ann")
    answer = create(ann)
    secret = secret_of(answer)
    assert re.fullmatch(r"pq_[A-Za-z0-9_-]{43}", secret)
    assert "no-store" in answer["Cache-Control"]
    token = Token.objects.get()
    assert token.digest == digest(secret)
    assert (token.owner.username, token.verbs, token.queues) == ("ann", ["read", "push"], ["jobs", "orders:*"])
    assert timedelta(days=29) < token.expires_at - timezone.now() <= timedelta(days=30)
    page = ann.get(LIST).content.decode()
    assert secret not in page
    assert "<code>orders:*</code>" in page
    actor, verb, before, after = told()[0]
    assert (actor, verb, before) == ("ann", "create_token", None)
    assert (after["token"], after["owner"], after["queues"]) == ("ci", "ann", "jobs, orders:*")
    assert secret not in str(told())
    assert token.digest not in str(told())


def test_a_form_that_is_sent_twice_makes_one_token(sign_in) -> None:
    ann = sign_in(Role.VIEWER, "ann")
    fields = {"form_number": number(ann, NEW, NEW), "name": "ci", "verbs": ["read"], "queues": "*", "days": ""}
    assert secret_of(ann.post(NEW, fields))
    assert ann.post(NEW, fields).status_code == 303
    assert Token.objects.count() == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "a\u3164b"},
        {"name": "x" * 101},
        {"verbs": []},
        {"verbs": ["fly"]},
        {"queues": ""},
        {"queues": "a/b"},
        {"queues": ",".join(f"q{n}" for n in range(51))},
        {"days": "0"},
        {"days": "x"},
        {"rate": "-1"},
    ],
)
def test_an_invalid_token_is_not_made_and_what_was_typed_stays(fields, sign_in) -> None:
    answer = create(sign_in(Role.OPERATOR, "ann"), **fields)
    assert answer.status_code == 422
    assert Token.objects.count() == 0
    assert told() == []
    if "verbs" not in fields:
        assert re.search(r'value="push"[^>]* checked', answer.content.decode())


def test_a_name_is_one_tokens_until_it_is_revoked(sign_in) -> None:
    ann, bob = sign_in(Role.VIEWER, "ann"), sign_in(Role.VIEWER, "bob")
    create(ann)
    assert create(bob).status_code == 422
    revoke(ann, Token.objects.get())
    assert secret_of(create(bob))


def test_the_same_name_twice_at_once_is_the_fields_error(sign_in) -> None:
    """Another one comes in between the look and the insert."""
    eve = sign_in(Role.VIEWER, "eve")

    def other(instance: Token, **_named: object) -> None:
        row = {"name": "ci", "owner": instance.owner, "created_at": instance.created_at}
        Token.objects.bulk_create([Token(**row, digest="x", verbs=[], queues=[])])

    pre_save.connect(other, sender=Token)
    try:
        answer = create(eve)
    finally:
        pre_save.disconnect(other, sender=Token)
    assert answer.status_code == 422
    assert "A token of this name is there already" in answer.content.decode()
    assert told() == []
    assert create(eve, name="second").status_code == 200


def test_the_preview_shows_what_the_owner_may_use_and_makes_nothing(granted) -> None:
    client = Client()
    client.force_login(granted(Role.NONE, {"jobs": Role.OPERATOR}, "ann"))
    text = create(client, queues="*", preview="1").content.decode()
    matching = text[text.index('id="matching"') :].partition("</div>")[0]
    assert ">jobs<" in matching
    assert ">mail<" not in matching
    assert Token.objects.count() == 0


def test_tokens_of_another_person_are_seen_and_revoked_by_admins_alone(sign_in) -> None:
    ann, bob, root = sign_in(Role.OPERATOR, "ann"), sign_in(Role.OPERATOR, "bob"), sign_in(Role.ADMIN, "root")
    create(ann)
    token = Token.objects.get()
    assert ">ci</bdi>" not in bob.get(LIST).content.decode()
    url = reverse("people:revoke-token", args=[token.pk])
    answer = bob.post(url, {"form_number": number(bob, NEW, NEW)}, follow=True)
    token.refresh_from_db()
    assert token.revoked_at is None
    assert "The token ci" not in answer.content.decode()
    assert ">ann</bdi>" in root.get(LIST).content.decode()
    (link,) = re.findall(r'href="(/tokens/[^"]*)"[^>]*>1<', root.get(f"/people/{token.owner_id}/").content.decode())
    assert ">ci</bdi>" in root.get(link).content.decode()
    answer = revoke(root, token)
    assert "The token ci is revoked" in answer.content.decode()
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert told()[0][:2] == ("root", "revoke_token")
    assert ">ci</bdi>" in ann.get(LIST).content.decode()  # among those that were revoked


def test_nothing_is_made_when_the_audit_cannot_be_written(sign_in, store) -> None:
    ann = sign_in(Role.VIEWER, "ann")
    fields = {"form_number": number(ann, NEW, NEW), "name": "ci", "verbs": ["read"], "queues": "*"}
    store.close()
    assert ann.post(NEW, fields).status_code == 503
    assert Token.objects.count() == 0


def test_a_read_only_site_lets_tokens_be_revoked(sign_in, settings) -> None:
    ann = sign_in(Role.OPERATOR, "ann")
    create(ann)
    settings.PQADMIN_ARM_MINUTES = 15
    revoke(ann, Token.objects.get())
    assert Token.objects.get().revoked_at is not None


def test_a_person_has_a_limited_number(sign_in, monkeypatch) -> None:
    monkeypatch.setattr(token_lifecycle, "MOST_TOKENS", 1)
    ann = sign_in(Role.VIEWER, "ann")
    create(ann)
    assert create(ann, name="second").status_code == 409
    assert Token.objects.count() == 1


def run(*arguments: str) -> list[str]:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().splitlines()


def test_the_command_prints_the_token_alone_on_the_last_line(person) -> None:
    person(Role.ADMIN, "root")
    *_, secret = run("create_token", "ci", "--queues", "orders:*,mail", "--verbs", "push,take", "--days", "7")
    token = Token.objects.get(digest=digest(secret))
    assert (token.owner.username, token.verbs, token.queues) == ("root", ["push", "take"], ["orders:*", "mail"])
    assert token.expires_at is not None
    entry = get_store().audit.entries().entries[0]
    assert (entry.verb, entry.via, entry.after["token"]) == ("create_token", "cli", "ci")
    assert any(line.startswith("ci ") for line in run("tokens"))
    (listed,) = map(json.loads, run("tokens", "--jsonl"))
    assert (listed["token"], listed["owner"], listed["verbs"]) == ("ci", "root", ["push", "take"])
    assert datetime.fromisoformat(listed["expires_at"]) == token.expires_at
    assert secret not in str(listed)
    assert run("revoke_token", "ci") == ["Revoked the token ci."]
    assert Token.objects.get().revoked_at is not None
    with pytest.raises(CommandError, match="No valid token"):
        run("revoke_token", "ci")


def test_the_command_names_another_owner(person) -> None:
    person(Role.ADMIN, "root")
    person(Role.VIEWER, "ann")
    run("create_token", "ci", "--queues", "*", "--verbs", "all", "--owner", "ann", "--rate", "5")
    token = Token.objects.get()
    assert (token.owner.username, token.verbs, token.rate, token.expires_at) == ("ann", list(QUEUE_VERBS), 5, None)


@pytest.mark.parametrize(
    "wrong",
    [
        ("ci", "--queues", "a/b", "--verbs", "read"),
        ("ci", "--queues", ",", "--verbs", "read"),
        ("ci", "--queues", "*", "--verbs", "fly"),
        ("ci", "--queues", "*", "--verbs", "read", "--days", "0"),
        ("ci", "--queues", "*", "--verbs", "read", "--owner", "eve"),
        ("c i", "--queues", "*", "--verbs", "read"),
        ("ci", "--verbs", "read"),
    ],
)
def test_a_wrong_command_makes_nothing(wrong: tuple[str, ...], person) -> None:
    person(Role.ADMIN, "root")
    with pytest.raises(CommandError):
        run("create_token", *wrong)
    assert Token.objects.count() == 0


def test_tokens_that_ended_long_ago_are_forgotten(person) -> None:
    owner, now = person(Role.VIEWER, "ann"), datetime(2026, 1, 1, tzinfo=UTC)
    long_ago, lately = now - token_lifecycle.KEPT, now - timedelta(days=1)
    for n, (revoked, expired) in enumerate([(long_ago, None), (None, long_ago), (lately, lately), (None, None)]):
        given = {"revoked_at": revoked, "expires_at": expired, "created_at": now}
        Token.objects.create(name=f"t{n}", digest=str(n), owner=owner, verbs=[], queues=[], **given)
    token_lifecycle.sweep(now)
    assert sorted(Token.objects.values_list("name", flat=True)) == ["t2", "t3"]
    assert User.objects.filter(username="ann").exists()
