"""Changes of the site's tables whose commit fails: nothing was done, and nothing says that it was."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Role
from pqadmin.wall.models import Board, Link
from queues import Store
from queues.errors import OutcomeUnknown
from tests.api.conftest import Browser, in_thread
from tests.api.test_verbs import problem
from tests.sites import failing_commits

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.parametrize("site", ["memory:"], indirect=True)]


@pytest.mark.parametrize(
    ("method", "path", "table", "act"),
    [
        ("POST", "people/eve/deactivate", "auth_user", "UPDATE"),
        ("POST", "people/eve/password", "auth_user", "UPDATE"),
        ("DELETE", "tokens/{token}", "accounts_token", "UPDATE"),
        ("DELETE", "boards/hall/links/{link}", "wall_link", "UPDATE"),
        ("PATCH", "boards/hall", "wall_board", "UPDATE"),
        ("DELETE", "boards/hall", "wall_board", "DELETE"),
    ],
)
async def test_a_request_whose_commit_failed_is_executed_when_it_is_repeated(
    site: Store,
    person: Callable[..., User],
    token: Callable[..., str],
    method: str,
    path: str,
    table: str,
    act: str,
) -> None:
    root = await in_thread(person, Role.ADMIN, "root")
    await in_thread(person, Role.VIEWER, "eve")
    await in_thread(token, root, verbs=[Verb.READ])
    admin = await in_thread(Browser, root)
    await admin.post("boards", json={"name": "hall"})
    link = (await admin.post("boards/hall/links", json={"label": "entrance"})).json()["id"]
    path = path.format(token=(await Token.objects.aget()).pk, link=link)
    asked = {"json": {"theme": "light"} if method == "PATCH" else None, "headers": {"Idempotency-Key": "k"}}

    async def tables() -> list[object]:
        rows = [model.objects.order_by("pk").values() for model in (User, Token, Board, Link)]
        return [await in_thread(list, each) for each in rows]

    before = await tables()
    await in_thread((failing := failing_commits(table, act)).__enter__)
    problem(await admin.request(method, path, **asked), 503, "DatabaseError")
    await in_thread(failing.__exit__, None, None, None)
    assert await tables() == before
    again = await admin.request(method, path, **asked)
    assert (again.status_code, again.headers.get("Idempotent-Replay")) == (200, None)
    assert await tables() != before
    assert (await admin.request(method, path, **asked)).headers["Idempotent-Replay"] == "true"


async def test_a_request_whose_audit_record_is_uncertain_is_executed_when_it_is_repeated(
    site: Store, person: Callable[..., User], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = await in_thread(Browser, await in_thread(person, Role.ADMIN, "root"))
    await in_thread(person, Role.VIEWER, "eve")
    executed = Store.transact

    def unanswered(*asked: Any, **named: Any) -> Any:
        executed(*asked, **named)
        raise OutcomeUnknown("The answer of the commit was lost.")

    key = {"Idempotency-Key": "k"}
    with monkeypatch.context() as lost:
        lost.setattr(Store, "transact", unanswered)
        problem(await admin.post("people/eve/deactivate", headers=key), 503, "StoreError")
    assert (await User.objects.aget(username="eve")).is_active
    assert (await admin.post("people/eve/deactivate", headers=key)).json()["active"] is False
    assert not (await User.objects.aget(username="eve")).is_active
