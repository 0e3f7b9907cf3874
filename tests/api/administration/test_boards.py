"""Boards and their links over HTTP."""

import pytest
from django.utils import timezone

from pqadmin.accounts.models import Token
from pqadmin.wall.models import Link
from queues import Store
from tests.api.conftest import Program
from tests.api.test_verbs import problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.parametrize("site", ["memory:"], indirect=True)]


async def test_a_board_is_made_changed_as_it_was_seen_and_removed_with_its_links(site: Store, program: Program) -> None:
    site.create_queue("orders:eu")
    key = {"Idempotency-Key": "board"}
    made = await program.post("boards", json={"name": "The hall", "globs": ["orders:*", "mail"]}, headers=key)
    assert (made.status_code, made.headers["Location"]) == (201, "/api/v1/boards/the-hall")
    assert (made.json()["queues"], made.json()["density"]) == (1, "far")
    assert (
        await program.post("boards", json={"name": "The hall", "globs": ["orders:*", "mail"]}, headers=key)
    ).json() == (made.json())
    await program.post("boards", json={"name": "Next", "rotation": ["the-hall"]})
    problem(await program.post("boards", json={"name": "x", "slug": "next"}), 422, "InvalidRequest")
    problem(await program.post("boards", json={"name": "x", "rotation": ["gone"]}), 422, "InvalidRequest")
    seen = await program.get("boards/the-hall")
    tag = {"If-Match": seen.headers["ETag"]}
    changed = await program.patch("boards/the-hall", json={"theme": "light"}, headers=tag)
    assert (changed.json()["theme"], changed.json()["globs"]) == ("light", ["orders:*", "mail"])
    problem(await program.patch("boards/the-hall", json={"theme": "auto"}, headers=tag), 412, "SettingsChanged")
    problem(
        await program.patch("boards/the-hall", json={"theme": "auto"}, headers={"If-Match": "a, b"}),
        422,
        "InvalidRequest",
    )
    assert (await program.patch("boards/the-hall", json={"seconds": 9})).json()["theme"] == "light"
    link = (await program.post("boards/the-hall/links", json={"label": "entrance"})).json()
    assert (link["state"], link["address"].partition("?token=")[0]) == ("waiting", "http://localhost/wall/the-hall")
    ended = await program.delete(f"boards/the-hall/links/{link['id']}")
    assert ended.json()["state"] == "revoked"
    assert (await program.delete(f"boards/the-hall/links/{link['id']}")).json() == ended.json()
    problem(await program.delete(f"boards/next/links/{link['id']}"), 404, "NotFound")  # of another board
    assert [each["board"] for each in (await program.get("boards")).json()["boards"]] == ["next", "the-hall"]
    assert (await program.delete("boards/the-hall")).json() == {"board": "the-hall"}
    problem(await program.get("boards/the-hall"), 404, "NotFound")
    assert (await program.get("boards/next")).json()["rotation"] == []
    entries = [entry for entry in site.audit.entries().entries if entry.queue is None]
    verbs = ["remove_board", "revoke_link", "mint_link", "change_board", "change_board", "make_board", "make_board"]
    assert [entry.verb for entry in entries] == verbs
    token = await Token.objects.aget()
    assert {(entry.actor, entry.via) for entry in entries} == {(f"token:{token.name}", "api")}


async def test_a_change_with_a_key_that_changed_nothing_stays_done(program: Program) -> None:
    await program.post("boards", json={"name": "hall"})
    key = {"Idempotency-Key": "k"}
    first = await program.patch("boards/hall", json={"theme": "dark"}, headers=key)  # it is dark already
    await program.patch("boards/hall", json={"theme": "light"})
    again = await program.patch("boards/hall", json={"theme": "dark"}, headers=key)
    assert (again.json(), again.headers["Idempotent-Replay"]) == (first.json(), "true")
    assert (await program.get("boards/hall")).json()["theme"] == "light"


async def test_a_board_is_refused_what_is_no_pattern_and_itself_by_name(program: Program) -> None:
    await program.post("boards", json={"name": "hall", "globs": ["orders:*"]})
    for globs in (["a,b"], ["a b"], ["ok", "a\nb"], ["a/b"]):
        for method, path in (("POST", "boards"), ("PATCH", "boards/hall")):
            problem(await program.request(method, path, json={"name": "hall", "globs": globs}), 422, "BadName")
    problem(await program.post("boards", json={"name": "two", "globs": []}), 422, "InvalidRequest")
    refused = problem(await program.patch("boards/hall", json={"rotation": ["hall"]}), 422, "InvalidRequest")
    (error,) = refused["errors"]
    assert (error["field"], error["message"]) == ("rotation", "a board takes turns with other boards, not with itself")
    for fault in ({"rotation": ["hall"]}, {"language": "xx"}):
        refused = problem(await program.patch("boards/hall", json=fault), 422, "InvalidRequest")
        assert not refused["detail"].endswith("..")
    assert (await program.get("boards")).json()["boards"][0]["globs"] == ["orders:*"]
    assert len((await program.get("boards")).json()["boards"]) == 1


async def test_a_board_is_described_alone_as_in_the_list(site: Store, program: Program) -> None:
    for name in ("orders:eu", "orders:us", "mail"):
        site.create_queue(name)
    for name in ("b", "c", "a"):
        await program.post("boards", json={"name": name})
    await program.patch("boards/a", json={"globs": ["orders:*"], "rotation": ["c", "b"]})
    for label in ("new", "used", "revoked"):
        await program.post("boards/a/links", json={"label": label})
    await Link.objects.exclude(label="new").aupdate(used_at=timezone.now())
    await program.delete(f"boards/a/links/{(await Link.objects.aget(label='revoked')).pk}")
    shown = (await program.get("boards/a")).json()
    shown.pop("links")
    assert shown == (await program.get("boards")).json()["boards"][0]
    assert (shown["queues"], shown["rotation"], shown["screens"]) == (2, ["b", "c"], 1)


async def test_a_repeated_change_of_a_board_is_answered_as_it_was_first(program: Program) -> None:
    await program.post("boards", json={"name": "next"})
    asked = [
        ("POST", "boards", {"name": "hall"}),
        ("PATCH", "boards/hall", {"theme": "light", "rotation": ["next"]}),
        ("POST", "boards/hall/links", {"label": "entrance"}),
        ("DELETE", "boards/hall/links/1", None),
        ("DELETE", "boards/hall", None),
    ]
    first = {}
    for method, path, body in asked:
        if "links/" in path:
            path = f"boards/hall/links/{(await Link.objects.aget()).pk}"
        answer = await program.request(method, path, json=body, headers={"Idempotency-Key": method + path})
        assert answer.is_success
        first[method, path] = (body, answer)
    for (method, path), (body, answer) in reversed(first.items()):
        again = await program.request(method, path, json=body, headers={"Idempotency-Key": method + path})
        assert again.json() == answer.json() | {name: None for name in ("address", "code") if name in answer.json()}
