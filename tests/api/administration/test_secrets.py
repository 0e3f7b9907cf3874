"""Secrets that the site makes up: shown in one answer, and found nowhere else."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from pqadmin.accounts.models import KeptAnswer, Token
from pqadmin.accounts.rights import Role
from pqadmin.wall import links
from queues import Store
from tests.api.conftest import Browser, Program, in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.parametrize("site", ["lmdb:"], indirect=True)]


async def password_is_good(password: str) -> bool:
    return await in_thread(lambda: User.objects.get(username="eve").check_password(password))


async def token_is_good(secret: str) -> bool:
    return (await Program(secret).get("store")).json()["caller"] == "token:ci"


async def link_is_good(address: str) -> bool:
    token = address.partition("?token=")[2]
    return await in_thread(links.is_unused, "hall", token, now=datetime.now(UTC))


@pytest.mark.parametrize(
    ("path", "body", "secret", "is_good"),
    [
        ("people", {"name": "eve", "role": "viewer"}, "password", password_is_good),
        ("people/eve/password", None, "password", password_is_good),
        ("tokens", {"name": "ci", "verbs": ["read"], "queues": ["*"]}, "secret", token_is_good),
        ("boards/hall/links", {"label": "entrance"}, "address", link_is_good),
    ],
)
async def test_a_secret_is_in_the_first_answer_alone(
    site: Store,
    person: Callable[..., User],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    path: str,
    body: object,
    secret: str,
    is_good: Callable[[str], bool],
) -> None:
    caplog.set_level(logging.DEBUG)
    admin = await in_thread(Browser, await in_thread(person, Role.ADMIN, "root"))
    if path == "people/eve/password":
        await in_thread(person, Role.VIEWER, "eve")
    assert (await admin.post("boards", json={"name": "hall"})).status_code == 201
    key = {"Idempotency-Key": "once"}
    first = await admin.post(path, json=body, headers=key)
    assert first.is_success, first.text
    made = first.json()
    assert await is_good(made[secret])
    again = await admin.post(path, json=body, headers=key)
    assert (again.status_code, again.headers["Idempotent-Replay"]) == (first.status_code, "true")
    assert again.json() == made | {name: None for name in (secret, "code") if name in made}
    assert await is_good(made[secret])  # the second one made no other
    kept = b"".join(each.read_bytes() for each in (tmp_path / "store").rglob("*") if each.is_file())
    kept += b"".join([bytes(answer.value) async for answer in KeptAnswer.objects.all()])
    entries = site.audit.entries().entries
    assert entries[0].via == "api"
    assert entries[0].verb.encode() in kept  # so the files can be read
    told = caplog.text + repr(entries)
    for hidden in (made[secret].rpartition("=")[2], made.get("code") or made[secret]):
        assert hidden not in told
        assert hidden.encode() not in kept


async def test_tokens_are_listed_without_their_secrets(program: Program) -> None:
    (listed,) = (await program.get("tokens")).json()["tokens"]
    token = await Token.objects.aget()
    assert (listed["id"], listed["token"]) == (token.pk, token.name)
    assert not {"secret", "digest"} & listed.keys()
    assert token.digest not in str(listed)
