"""Tokens over HTTP: made by a session, for what their owner may do, and revoked at once."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from pqadmin.accounts.authentication import Badge, Credentials, Refusal, Unauthenticated, digest
from pqadmin.accounts.caller import QUEUE_VERBS, Verb
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Role
from queues import Store
from tests.api.conftest import Browser, Program, in_thread
from tests.api.test_verbs import problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.parametrize("site", ["memory:"], indirect=True)]


async def test_a_session_makes_and_revokes_tokens_of_its_own(
    site: Store, person: Callable[..., User], token: Callable[..., str]
) -> None:
    operator = await in_thread(Browser, await in_thread(person, Role.OPERATOR, "ann"))
    admin = await in_thread(Browser, await in_thread(person, Role.ADMIN, "root"))
    asked = {"name": "ci", "verbs": list(QUEUE_VERBS), "queues": ["a:*"], "days": 9, "rate": 5}
    made = (await operator.post("tokens", json=asked)).json()
    assert (made["owner"], made["verbs"], made["queues"], made["rate"]) == ("ann", list(QUEUE_VERBS), ["a:*"], 5)
    assert problem(await operator.post("tokens", json=asked), 409, "NotPossible")["field"] == "name"  # it is taken
    for field, value in (("name", "x y"), ("verbs", []), ("queues", [])):
        body = {**asked, "name": "two", field: value}
        (error,) = problem(await operator.post("tokens", json=body), 422, "InvalidRequest")["errors"]
        assert error["field"] == field
    for browser, queues in ((operator, ["*"]), (admin, ["a:*"])):
        body = {"name": "two", "verbs": ["administer"], "queues": queues}
        assert problem(await browser.post("tokens", json=body), 409, "NotPossible")["field"] == "verbs"
    (theirs,) = ((await admin.post("tokens", json={"name": "root", "verbs": ["administer"], "queues": ["*"]})).json(),)
    assert [each["token"] for each in (await operator.get("tokens")).json()["tokens"]] == ["ci"]
    assert [each["token"] for each in (await admin.get("tokens")).json()["tokens"]] == ["ci", "root"]
    problem(await operator.delete(f"tokens/{theirs['id']}"), 404, "NotFound")
    assert (await admin.delete(f"tokens/{made['id']}")).json()["revoked_at"]
    problem(await admin.delete(f"tokens/{made['id']}"), 404, "NotFound")
    assert [each["token"] for each in (await operator.get("tokens?revoked=true")).json()["tokens"]] == ["ci"]
    problem(await Program(theirs["secret"]).post("tokens", json=asked), 403, "Forbidden")  # no token makes tokens


async def test_a_token_that_a_token_revokes_is_refused_by_every_process_at_once(
    site: Store, person: Callable[..., User], token: Callable[..., str]
) -> None:
    root = await in_thread(person, Role.ADMIN, "root")
    ended = await in_thread(token, root, verbs=[Verb.READ])
    ci = Program(await in_thread(token, root, verbs=[Verb.ADMINISTER]))
    another = Credentials()  # as of another process: it keeps what it has read of the tables
    assert (await another.caller(Badge(token=digest(ended)))).verbs == {Verb.READ}
    assert (await Program(ended).get("queues")).status_code == 200
    row = await Token.objects.aget(digest=digest(ended))
    assert (await ci.delete(f"tokens/{row.pk}")).json()["token"] == row.name
    with pytest.raises(Unauthenticated) as refused:
        await another.caller(Badge(token=digest(ended)))
    assert refused.value.refusal is Refusal.REVOKED
    problem(await Program(ended).get("queues"), 401, "Unauthenticated")
    (entry,) = site.audit.entries().entries
    name = (await Token.objects.aget(revoked_at=None)).name
    assert (entry.actor, entry.via, entry.verb) == (f"token:{name}", "api", "revoke_token")
    assert entry.before is not None
    assert entry.before["token"] == row.name
