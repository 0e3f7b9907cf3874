"""People over HTTP: what admins change, and what a token of theirs may give."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from pqadmin.accounts.caller import QUEUE_VERBS, Verb
from pqadmin.accounts.models import KeptAnswer
from pqadmin.accounts.rights import Role
from pqadmin.accounts.roles import grant
from pqadmin.people import person_changes
from queues import Store
from tests.accounts.conftest import PASSWORD
from tests.api.conftest import Browser, Program, in_thread
from tests.api.test_verbs import problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.parametrize("site", ["memory:"], indirect=True)]


@pytest.fixture
def root(site: Store, person: Callable[..., User]) -> User:
    return person(Role.ADMIN, "root")


async def test_an_admin_changes_people_by_the_rules_of_pages(site: Store, root: User) -> None:
    admin = await in_thread(Browser, root)
    made = await admin.post(
        "people", json={"name": "eve", "role": "none", "grants": [{"queues": "a:*", "role": "viewer"}]}
    )
    assert (made.status_code, made.headers["Location"]) == (201, "/api/v1/people/eve")
    problem(await admin.post("people", json={"name": "eve", "role": "none"}), 409, "NotPossible")
    problem(await admin.put("people/eve/role", json={"role": "admin"}), 422, "ConfirmationMismatch")
    assert (await admin.put("people/eve/role", json={"role": "operator"})).json()["role"] == "operator"
    granted = await admin.put("people/eve/grants/b:*", json={"role": "operator"})
    assert granted.json()["grants"] == [
        {"queues": "a:*", "role": "viewer"},
        {"queues": "b:*", "role": "operator"},
    ]
    assert len((await admin.delete("people/eve/grants/a:*")).json()["grants"]) == 1
    problem(await admin.delete("people/eve/grants/a:*"), 404, "NotFound")
    assert (await admin.post("people/eve/deactivate")).json()["active"] is False
    assert (await admin.post("people/eve/reactivate")).json()["active"] is True
    assert [each["name"] for each in (await admin.get("people?q=E")).json()["people"]] == ["eve"]
    problem(await admin.get("people/bob"), 404, "NotFound")
    for refused in (
        await admin.post("people/root/deactivate"),
        await admin.put("people/root/role", json={"role": "operator"}),
    ):
        assert "last admin" in problem(refused, 409, "NotPossible")["detail"]
    entries = site.audit.entries().entries
    assert [entry.verb for entry in entries] == [
        *("reactivate_person", "deactivate_person", "remove_grant", "add_grant", "change_role", "create_person")
    ]
    assert {(entry.actor, entry.via) for entry in entries} == {("root", "api")}


async def test_a_request_with_a_key_is_executed_once_also_when_it_changed_nothing(root: User) -> None:
    admin = await in_thread(Browser, root)
    key = {"Idempotency-Key": "k"}
    await admin.post("people", json={"name": "eve", "role": "operator"})
    first = await admin.put("people/eve/role", json={"role": "viewer"}, headers=key)
    await admin.put("people/eve/role", json={"role": "none"})
    again = await admin.put("people/eve/role", json={"role": "viewer"}, headers=key)
    assert again.json() == first.json()
    assert (await admin.get("people/eve")).json()["role"] == "none"
    problem(await admin.put("people/eve/role", json={"role": "operator"}, headers=key), 422, "KeyReused")
    await KeptAnswer.objects.aupdate(at=datetime.now(UTC) - timedelta(days=1))
    for replayed in (None, "true"):
        later = await admin.put("people/eve/role", json={"role": "operator"}, headers=key)
        assert (later.json()["role"], later.headers.get("Idempotent-Replay")) == ("operator", replayed)


@pytest.mark.parametrize("verbs", [(Verb.ADMINISTER,), (Verb.ADMINISTER, Verb.READ), tuple(Verb)], ids=len)
async def test_a_token_gives_no_more_than_it_has(
    root: User, person: Callable[..., User], token: Callable[..., str], verbs: tuple[Verb, ...]
) -> None:
    """A token makes a person, as which it then can sign in, of no role whose verbs it lacks, and never an admin."""
    await in_thread(person, Role.ADMIN, "ann")
    gone = await in_thread(person, Role.OPERATOR, "gone")
    gone.is_active = False
    await gone.asave()
    ci = Program(await in_thread(token, root, verbs=verbs))
    needed = {"none": (), "viewer": (Verb.READ,), "operator": QUEUE_VERBS}
    for role, given in needed.items():
        good = set(given) <= set(verbs)
        name = f"eve-{role}"
        answers = [await ci.post("people", json={"name": name, "role": role})]
        await in_thread(person, Role(role), f"bob-{role}")
        if role != "none":
            answers.append(await ci.put("people/bob-none/role", json={"role": role}))
            answers.append(await ci.put(f"people/bob-none/grants/{role}", json={"role": role}))
            body = {"name": f"{name}-2", "role": "none", "grants": [{"queues": "x", "role": role}]}
            answers.append(await ci.post("people", json=body))
        if role == "operator":
            answers.append(await ci.post("people/gone/reactivate"))
        assert [each.status_code // 100 for each in answers] == [2 if good else 4] * len(answers)
        if not good:
            assert {each.json()["code"] for each in answers} == {"Forbidden"}
            assert not await User.objects.filter(username__startswith=name).aexists()
    for method, path, body in (
        ("POST", "people", {"name": "mallory", "role": "admin"}),
        ("PUT", "people/bob-none/role", {"role": "admin", "confirm": "bob-none"}),
        ("POST", "people/ann/password", None),
        ("POST", "people/bob-none/password", None),  # a password would let it sign in as a person that is there
        ("POST", "people/ann/deactivate", None),
        ("POST", "people/root/deactivate", None),  # its owner
        ("PUT", "people/ann/role", {"role": "none"}),
        ("PUT", "people/ann/grants/x", {"role": "viewer"}),
    ):
        problem(await ci.request(method, path, json=body), 403, "Forbidden")
    assert await User.objects.filter(is_superuser=True, is_active=True).acount() == 2
    assert (await User.objects.aget(username="bob-none")).check_password(PASSWORD)


async def test_only_an_admins_token_for_all_queues_administers(
    root: User, person: Callable[..., User], token: Callable[..., str]
) -> None:
    part = Program(await in_thread(token, root, queues=["a:*"]))
    problem(await part.get("people"), 403, "Forbidden")
    problem(await part.post("people", json={"name": "eve", "role": "none"}), 403, "Forbidden")
    ann = await in_thread(person, Role.ADMIN, "ann")
    hers = Program(await in_thread(token, ann))
    assert (await hers.get("people")).status_code == 200
    await in_thread(grant, ann, Role.OPERATOR)
    problem(await hers.get("people"), 403, "Forbidden")


async def test_a_read_only_site_refuses_changes_of_a_session_but_not_to_end_a_token(
    root: User, token: Callable[..., str], settings
) -> None:
    settings.PQADMIN_ARM_MINUTES = 15
    admin, ci = await in_thread(Browser, root), Program(await in_thread(token, root))
    for method, path, body in (
        ("POST", "people", {"name": "eve", "role": "none"}),
        ("POST", "people/root/password", None),
        ("POST", "boards", {"name": "hall"}),
        ("POST", "groups/pause", {"group": "a:", "reason": "x"}),
        ("POST", "sample-load", None),
    ):
        problem(await admin.request(method, path, json=body), 403, "NotArmed")
    assert (await admin.get("people")).status_code == 200
    assert (await ci.post("people", json={"name": "eve", "role": "none"})).status_code == 201  # programs need no window
    made = await admin.post("tokens", json={"name": "x", "verbs": ["read"], "queues": ["*"]})
    assert (await admin.delete(f"tokens/{made.json()['id']}")).status_code == 200


async def test_a_session_changes_people_with_the_token_of_forms_alone(root: User) -> None:
    stranger = await in_thread(Browser, root)
    del stranger.headers["X-CSRFToken"]
    problem(await stranger.post("people", json={"name": "eve", "role": "none"}), 403, "CSRFFailed")
    assert not await User.objects.filter(username="eve").aexists()


async def test_the_audit_shows_changes_of_people_and_tokens_to_those_that_administer(
    site: Store, root: User, token: Callable[..., str]
) -> None:
    admin = await in_thread(Browser, root)
    site.actions("root").create_queue("jobs")
    await admin.post("people", json={"name": "eve", "role": "none"})
    await admin.post("tokens", json={"name": "hidden", "verbs": ["read"], "queues": ["*"]})
    reader = Program(await in_thread(token, root, verbs=[Verb.READ]))
    keeper = Program(await in_thread(token, root, verbs=[Verb.READ, Verb.ADMINISTER]))
    for caller, seen in ((admin, True), (keeper, True), (reader, False)):
        entries = (await caller.get("audit")).json()["entries"]
        people = ["create_token", "create_person"] if seen else []
        assert [entry["verb"] for entry in entries] == [*people, "create"]
        assert ((await caller.get("audit?verb=create_token")).json()["entries"] != []) is seen


async def test_a_person_that_is_as_asked_already_stays_without_an_audit_record(
    site: Store, root: User, person: Callable[..., User]
) -> None:
    admin = await in_thread(Browser, root)
    await in_thread(person, Role.VIEWER, "eve")
    for method, path, body in (
        ("PUT", "people/eve/role", {"role": "operator"}),
        ("PUT", "people/eve/grants/a:*", {"role": "viewer"}),
        ("POST", "people/eve/deactivate", None),
        ("POST", "people/eve/reactivate", None),
    ):
        first = await admin.request(method, path, json=body)
        recorded = site.audit.entries().entries
        for headers in ({}, {"Idempotency-Key": path}, {"Idempotency-Key": path}):
            again = await admin.request(method, path, json=body, headers=headers)
            assert (again.status_code, again.json()) == (200, first.json())
        assert site.audit.entries().entries == recorded
    assert len(recorded) == 4


async def test_a_refusal_about_a_person_names_a_field_of_the_request(root: User, granted: Callable[..., User]) -> None:
    admin = await in_thread(Browser, root)
    await in_thread(granted, Role.NONE, {f"q{n}": Role.VIEWER for n in range(person_changes.MOST_GRANTS)}, "full")
    for method, path, body, field in (
        ("PUT", "people/full/grants/more", {"role": "viewer"}, "pattern"),
        ("PUT", "people/root/role", {"role": "none"}, "role"),
        ("POST", "people/root/deactivate", None, None),
        ("POST", "people", {"name": "full", "role": "none"}, "name"),
    ):
        assert problem(await admin.request(method, path, json=body), 409, "NotPossible")["field"] == field
    for name in ("e ve", "", "n" * 151):
        refused = problem(await admin.post("people", json={"name": name, "role": "none"}), 422, "InvalidRequest")
        assert [error["field"] for error in refused["errors"]] == ["name"]
