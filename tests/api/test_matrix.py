"""Rights on the API: every operation of the schema × the role of a token's owner × the verbs of the token × its queues.

An operation without a row fails. A queue that the caller may not see answers as one that is not there.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import GRANTABLE, Right, Role
from pqadmin.api.application import api
from pqadmin.api.docs import openapi
from pqadmin.wall.models import Board
from queues import Store
from tests.api.conftest import Browser, Program, in_thread

pytestmark = pytest.mark.django_db(transaction=True)

_ROWS: Mapping[tuple[Verb | None, Right], str] = {
    # Of any verb.
    (None, Right.READ): "store describe_queue",
    (Verb.READ, Right.READ): "list_boards get_sample_load list_queues get_queue consumers health history "
    "queue_targets list_targets list_items get_item list_finished get_finished peek look_at_queue export_items "
    "search dead_errors history_of_all preview_bulk list_jobs "
    "get_job audit trash events",
    (Verb.PUSH, Right.ACT): "push push_chunk list_templates get_template",
    (Verb.TAKE, Right.ACT): "pop pop_into_trash lease ack release extend outlook",
    (Verb.MANAGE, Right.ACT): "reveal_item change_item delete_item promote_item retry_item release_item move_item "
    "act_on_items begin_bulk purge_queue",
    # Of what they are about, the right to act is asked too.
    (Verb.MANAGE, Right.READ): "cancel_job resume_job undo",
    (Verb.CONFIGURE, Right.ACT): "create_queue configure_queue delete_queue rename_queue restore_queue detach_queue "
    "pause_queue resume_queue set_targets remove_targets pause_group resume_group keep_template forget_template "
    "start_sample_load stop_sample_load",
    (Verb.CONFIGURE, Right.ADMIN): "attach_queue",
    (Verb.ADMINISTER, Right.ADMIN): "list_people get_person create_person change_role add_grant remove_grant "
    "deactivate_person reactivate_person reset_password list_tokens revoke_token get_board make_board change_board "
    "remove_board mint_link revoke_link",
    # Of a session.
    (Verb.ADMINISTER, Right.READ): "create_token",
}
#: What each operation asks for.
ASKS = {name: asks for asks, names in _ROWS.items() for name in names.split()}
#: Operations that ask for one more verb.
BESIDES = dict.fromkeys(
    [
        "reveal_item",
        "list_templates",
        "get_template",
        "get_board",
        "make_board",
        "change_board",
        "remove_board",
        "mint_link",
        "revoke_link",
    ],
    Verb.READ,
)
#: Operations that no token is good for.
OF_SESSIONS = {"create_token", "reset_password"}
#: What a person's session does with less than a token's owner needs: with tokens of one's own.
OF_ONES_OWN = {"list_tokens", "revoke_token"}
#: Operations that ask for the right on all queues.
OF_ALL = {"history_of_all", "set_targets", "remove_targets", "list_people", "list_tokens"}
#: Operations on a name without a queue, or with the id of a queue in the query.
OF_A_NAME = {"restore_queue", "attach_queue", "describe_queue"}
#: The verbs of tokens: each alone, and all.
VERBS = [*({verb} for verb in Verb), set(Verb)]
#: Open to all.
OPEN = {"openapi", "explain_problem"}
#: An allowed one does not end: tests of events have it.
ENDLESS = {"events"}
_ITEM = "0" * 40


def operations() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield the id, method, path and description of each operation that asks for a caller."""
    for path, method, operation in openapi.operations(openapi.document(api)):
        if operation["operationId"] not in OPEN:
            yield operation["operationId"], method, path.removeprefix("/api/v1/"), operation


def example(schema: Any) -> Any:
    """Return a value that a schema accepts: of an object, what is required."""
    if "$ref" in schema:
        return example(openapi.document(api)["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    for several in ("allOf", "anyOf", "oneOf"):
        if several in schema:
            return example(schema[several][0])
    if "enum" in schema or "const" in schema:
        return schema.get("const") or schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: example(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return [example(schema["items"])]
        case "integer" | "number":
            return 1
    return "x"


#: Bodies that need more than what is required.
_BODIES = {
    "move_item": {"to": "q-push"},
    "push": {"value": "x", "priority": 1},
    "push_chunk": {"items": [{"value": "x", "priority": 1}], "source": "f", "last_line": 1},
    "change_item": {"priority": 1},
    "configure_queue": {"note": "x"},
    "create_token": {"name": "x", "verbs": ["read"], "queues": ["x"]},
}


async def send(program: Program, name: str, method: str, path: str, operation: Any, queue: str) -> httpx.Response:
    """Send the simplest valid request of an operation about a queue."""
    places = {each["name"]: each["schema"] for each in operation["parameters"] if each["in"] == "path"}
    about = {"pattern": "x*", "slug": "x", "name": "eve", "board": "x"}
    about["id"] = "1" if places.get("id", {}).get("type") == "integer" else _ITEM
    filled = path.format(queue=queue, **about)
    query = {
        each["name"]: example(each["schema"])
        for each in operation["parameters"]
        if each["in"] == "query" and each["required"]
    }
    content = operation.get("requestBody", {}).get("content", {})
    body = _BODIES.get(name) or (example(content["application/json"]["schema"]) if content else None)
    return await program.request(method, filled, params=query, json=body)


def test_every_operation_has_a_row() -> None:
    assert {name for name, *_ in operations()} == set(ASKS)


@pytest.fixture
def queues(site: Store) -> None:
    """A queue for each operation on one, as some delete or rename it."""
    for name, _, path, _ in operations():
        if "{queue}" in path:
            site.create_queue(f"q-{name}")


async def allowed(program: Program) -> set[str]:
    """Return the operations that are not refused; to a caller that sees no queue none is there."""
    found = set()
    for name, method, path, operation in operations():
        if name in ENDLESS:
            continue
        answer = await send(program, name, method, path, operation, f"q-{name}")
        assert answer.status_code != 401
        assert answer.status_code < 500, (name, answer.text)
        code = "" if answer.status_code < 400 else answer.json()["code"]
        assert code not in ("InvalidRequest", "BadRequest"), (name, answer.text)  # it would say nothing of rights
        if code not in ("Forbidden", "QueueNotFound"):
            found.add(name)
    return found


def expected(role: Role, verbs: set[Verb]) -> set[str]:
    """Return the operations that a token of an owner with the role is good for."""
    asked = {name for name, (verb, right) in ASKS.items() if verb in {*verbs, None} and role.has(right)}
    asked -= {name for name, verb in BESIDES.items() if verb not in verbs}
    return asked - ENDLESS - OF_SESSIONS


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("verbs", VERBS, ids=lambda verbs: ",".join(sorted(verbs)))
async def test_a_token_does_what_its_verbs_and_the_role_of_its_owner_allow(
    queues: None, person: Callable[..., User], token: Callable[..., str], role: Role, verbs: set[Verb]
) -> None:
    program = Program(await in_thread(token, await in_thread(person, role), verbs=list(verbs)))
    assert await allowed(program) == expected(role, verbs)


@pytest.mark.parametrize("role", Role)
async def test_a_session_does_what_the_role_of_its_person_allows(
    queues: None, person: Callable[..., User], role: Role
) -> None:
    browser = await in_thread(Browser, await in_thread(person, role))
    mine = OF_ONES_OWN if role.has(Right.READ) else set()
    assert await allowed(browser) == {name for name, (_, right) in ASKS.items() if role.has(right)} - ENDLESS | mine


async def test_nothing_is_done_without_a_token(queues: None) -> None:
    for name, method, path, operation in operations():
        answer = await send(Program(None), name, method, path, operation, f"q-{name}")
        assert (answer.status_code, answer.json()["code"]) == (401, "Unauthenticated"), name


async def test_a_request_for_another_queue_of_the_name_does_nothing(queues: None, site: Store) -> None:
    browser = await in_thread(Browser, await in_thread(User.objects.create_superuser, "root"))
    browser.headers["PQ-Queue-ID"] = "1"
    before = site.directory()
    for name, method, path, operation in operations():
        if "{queue}" in path and name not in OF_A_NAME:
            answer = await send(browser, name, method, path, operation, f"q-{name}")
            assert (answer.status_code, "QueueNotFound" in answer.text) == (404, True), (name, answer.text)
    assert site.directory() == before


@pytest.mark.parametrize(
    ("by", "role"), [*(("grant", role) for role in GRANTABLE), *(("token", role) for role in Role if role != Role.NONE)]
)
@pytest.mark.parametrize("verbs", VERBS, ids=lambda verbs: ",".join(sorted(verbs)))
async def test_a_hidden_queue_answers_as_one_that_is_not_there(
    site: Store,
    granted: Callable[..., User],
    person: Callable[..., User],
    token: Callable[..., str],
    by: str,
    role: Role,
    verbs: set[Verb],
) -> None:
    """Whether the owner may not see it, or the token is not for it; and no list names it."""
    for name in ("seen", "hidden"):
        site.create_queue(name).push(b"x", 1)
    trash_id = site.actions("ann").delete_item("hidden", site.queue("hidden").peek_many(1)[0].id).trash_id
    site.actions("ann").begin_bulk("delete", "hidden")
    site.actions("ann").set_targets("hidden*", depth=5)
    by_ann = {"made_by": "ann", "changed_by": "ann", "made_at": site.now(), "changed_at": site.now()}
    await in_thread(Board.objects.create, slug="hidden", name="hidden", globs=["hidden"], **by_ann)
    if by == "grant":
        secret = await in_thread(token, await in_thread(granted, Role.NONE, {"seen": role}), verbs=list(verbs))
    else:
        secret = await in_thread(token, await in_thread(person, role), verbs=list(verbs), queues=["seen"])
    program = Program(secret)
    for name, method, path, operation in operations():
        if "{queue}" in path:
            hidden, missing = [
                await send(program, name, method, path, operation, queue) for queue in ("hidden", "hiddem")
            ]
            assert hidden.text.replace("hidden", "hiddem") == missing.text, name
            assert hidden.status_code in (403, 404), (name, hidden.text)
        elif method == "get" and name not in ENDLESS and "{" not in path:
            answer = await send(program, name, method, path, operation, "")
            verb = ASKS[name][0]
            good = name not in OF_ALL and (verb is None or verb in verbs) and role.has(ASKS[name][1])
            assert answer.status_code == (200 if good else 403), (name, answer.text)
            assert "hidden" not in answer.text, name
    undone = await program.post(f"undo/{trash_id}")
    assert undone.json()["code"] == ("TrashNotFound" if Verb.MANAGE in verbs else "Forbidden")
