"""Boards are made, changed and removed on pages, by admins, and told to the audit; other people see and open them."""

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, ProgrammingError
from django.test import Client
from django.utils import timezone, translation

from pqadmin.accounts.models import Grant
from pqadmin.accounts.roles import Role
from pqadmin.display.words import detail_words
from pqadmin.site_audit import Author
from pqadmin.wall import board_changes, links, specs
from pqadmin.wall.models import Board, Link
from queues import Store
from queues.errors import StoreUnreachable
from tests.wall.conftest import NOW, MakeBoard

HOSTILE = "<script>alert(1)</script>\u202e"


def typed(**more: Any) -> dict[str, Any]:
    return {"name": "Hall", "globs": "*", "order": "worst", "density": "far", "theme": "dark", "seconds": "30"} | more


def send(client: Client, path: str, **more: Any) -> Any:
    page = client.get(path).content.decode()
    number = re.search(r'name="form_number" value="([^"]+)"', page)
    assert number
    seen = re.search(r'name="seen" value="([^"]*)"', page)
    stamp = {"seen": html.unescape(seen.group(1))} if seen else {}
    return client.post(path, typed(form_number=number.group(1), **stamp | more))


def test_a_board_is_made_changed_and_removed_and_the_audit_names_the_person(admin: Client, store: Store) -> None:
    answer = send(admin, "/boards/new/", name="Fulfilment, EU", globs="orders:*\nmail:?  orders:*")
    assert (answer.status_code, answer["Location"]) == (303, "/boards/fulfilment-eu/")
    board = Board.objects.get()
    assert (board.globs, board.made_by) == (["orders:*", "mail:?"], "a-admin")
    for _time in range(2):
        same = send(admin, "/boards/fulfilment-eu/", name="Orders", globs="orders:*", density="near")
        assert same.status_code == 303
    board.refresh_from_db()
    assert (board.name, board.slug, board.density) == ("Orders", "fulfilment-eu", "near")
    send(admin, "/boards/fulfilment-eu/remove/")
    assert not Board.objects.exists()
    told = store.audit.entries().entries
    assert [entry.verb for entry in told] == ["remove_board", "change_board", "make_board"], "no change is no act"
    assert {entry.actor for entry in told} == {"a-admin"}
    assert told[1].before == {
        "board": "fulfilment-eu", "name": "Fulfilment, EU", "globs": ["orders:*", "mail:?"], "density": "far",
    }  # fmt: skip
    page = admin.get("/audit/").content.decode()
    for words in ("made a board", "changed a board", "removed a board"):
        assert words in page
    with translation.override("zh-hans"):
        left = {name for entry in told for name in {**(entry.before or {}), **(entry.after or {})}}
        assert {name for name in left if detail_words(name).isascii()} == set(), "every detail has a word"


def test_the_question_of_a_removal_counts_the_links_that_open_the_board(
    admin: Client, make_board: MakeBoard, store: Store
) -> None:
    board, now, by = make_board("Hall"), timezone.now(), Author(name="ada")

    def asked() -> str:
        return " ".join(re.sub("<[^>]+>", " ", admin.get("/boards/hall/remove/").content.decode()).split())

    assert "Queues are not touched. This cannot be undone." in asked()
    links.revoke(links.mint(board, "revoked", by=by, now=now)[0], by=by, now=now)
    links.mint(board, "never used", by=by, now=now - timedelta(days=2))
    assert "stop" not in asked()
    links.mint(board, "waiting", by=by, now=now)
    assert "Its 1 link stops working" in asked()
    token = links.mint(board, "used", by=by, now=now - timedelta(hours=23))[1]
    assert links.redeem("hall", token, address="192.0.2.7", now=now)
    Link.objects.filter(label="used").update(made_at=now - timedelta(days=2))
    assert "Its 2 links stop working" in asked()
    send(admin, "/boards/hall/remove/")
    assert (store.audit.entries().entries[0].before or {})["links"] == 2


def test_the_preview_shows_what_matches_now(admin: Client, store: Store) -> None:
    for name in ("orders:eu", "orders:us", "mail"):
        store.create_queue(name)
    page = admin.get("/boards/preview/", {"globs": "orders:*"}).content.decode()
    assert "2 queues match now" in page
    assert "orders:eu" in page
    assert "mail" not in page
    assert "No queue matches now" in admin.get("/boards/preview/", {"globs": "none"}).content.decode()
    wrong = admin.get("/boards/preview/", {"globs": "a/b"}).content.decode()
    assert "a/b" in wrong
    looked = send(admin, "/boards/new/", globs="mail", look="1").content.decode()
    assert "1 queue matches now" in looked, "without a script too"
    assert not Board.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "n" * 81),
        ("globs", ""),
        ("globs", "a/b"),
        ("globs", "*a" * 20),
        ("globs", " ".join(f"q{n}" for n in range(51))),
        ("slug", "New Board"),
        ("slug", "new"),
        ("slug", "taken"),
        ("order", "random"),
        ("language", "xx"),
        ("seconds", "1"),
        ("seconds", "many"),
        ("rotation", "999"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    field: str, value: str, admin: Client, make_board: MakeBoard, store: Store
) -> None:
    make_board("Taken")
    answer = send(admin, "/boards/new/", **{field: value})
    assert answer.status_code == 422
    assert Board.objects.count() == 1
    assert store.audit.entries().entries == ()


def test_lines_of_a_refused_form_stay_lines(admin: Client, store: Store) -> None:
    page = send(admin, "/boards/new/", name="", globs="orders:*\r\nmail:*").content.decode()
    assert "orders:*\nmail:*</textarea>" in page


def test_names_are_text_wherever_they_are_shown(admin: Client, store: Store) -> None:
    answer = send(admin, "/boards/new/", name=HOSTILE)
    assert answer.status_code == 303
    board = Board.objects.get()
    board.links.create(label=HOSTILE, token_hash="x", made_by=HOSTILE, made_at=board.made_at)
    for path in (
        "/boards/",
        f"/boards/{board.slug}/",
        f"/boards/{board.slug}/remove/",
        f"/wall/{board.slug}",
        "/audit/",
    ):
        page = admin.get(path).content.decode()
        assert "<script>alert" not in page, path
        assert "\u202e" not in page, path


def test_boards_of_equal_or_unspeakable_names_get_addresses_of_their_own(admin: Client, store: Store) -> None:
    for name in ("Hall", "Hall", "大厅", "new"):
        assert send(admin, "/boards/new/", name=name).status_code == 303
    assert set(Board.objects.values_list("slug", flat=True)) == {"hall", "hall-2", "board", "new-2"}


def test_boards_take_turns_and_one_that_is_removed_is_left_out(
    admin: Client, make_board: MakeBoard, store: Store
) -> None:
    mail = make_board("Mail", "mail:*")
    send(admin, "/boards/new/", name="Hall", globs="orders:*", rotation=[str(mail.pk)])
    spec = specs.read("hall")
    assert [part.name for part in spec.parts] == ["Hall", "Mail"]
    assert spec.scope.sees("mail:x")
    revision = spec.revision
    send(admin, "/boards/mail/remove/")
    spec = specs.read("hall")
    assert len(spec.parts) == 1
    assert not spec.scope.sees("mail:x")
    assert spec.revision != revision, "screens make their page anew"


def test_what_cannot_be_audited_is_not_done(
    admin: Client, make_board: MakeBoard, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = make_board("Hall")

    def away(_write: object) -> None:
        raise StoreUnreachable("away")

    number = re.search(r'name="form_number" value="([^"]+)"', admin.get("/boards/new/").content.decode())
    assert number
    monkeypatch.setattr(type(store), "transact", lambda _self, write: away(write))
    monkeypatch.setattr(type(store), "once", lambda _self, _key, write, **_more: away(write))
    answer = admin.post("/boards/new/", typed(name="Other", form_number=number.group(1)))
    assert answer.status_code == 503
    with pytest.raises(StoreUnreachable):
        board_changes.remove_board(board, by=Author(name="ada"))
    with pytest.raises(StoreUnreachable):
        links.mint(board, "x", by=Author(name="ada"), now=board.made_at)
    assert Board.objects.count() == 1
    assert not Link.objects.exists()


def test_other_people_see_boards_and_change_nothing(client_of: Callable[[Role], Client], make_board: MakeBoard) -> None:
    make_board("Hall")
    viewer = client_of(Role.VIEWER)
    page = viewer.get("/boards/").content.decode()
    assert "/wall/hall" in page
    assert "/boards/hall/" not in page
    assert viewer.get("/boards/hall/").status_code == 403
    assert viewer.post("/boards/hall/remove/").status_code == 403


def test_a_person_that_saves_second_sees_the_first_change_and_undoes_nothing(
    admin: Client, make_board: MakeBoard, store: Store
) -> None:
    board = make_board("Hall", "orders:*")
    before = board.stamp
    assert send(admin, "/boards/hall/", globs="orders:* mail:*").status_code == 303
    answer = send(admin, "/boards/hall/", seen=before, globs="orders:*", theme="light")
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "The board has changed meanwhile" in page
    assert "<bdi>orders:*  mail:*</bdi>" in page, "what it is now"
    assert "<bdi>orders:*</bdi>" in page, "what was typed"
    board.refresh_from_db()
    assert (board.globs, board.theme) == (["orders:*", "mail:*"], "dark")
    assert len(store.audit.entries(verb="change_board").entries) == 1
    stamp = re.search(r'name="seen" value="([^"]*)"', page)
    assert stamp
    again = send(admin, "/boards/hall/", seen=html.unescape(stamp.group(1)), globs="orders:*", theme="light")
    assert again.status_code == 303, "knowing of the other, he decides"
    board.refresh_from_db()
    assert (board.globs, board.theme) == (["orders:*"], "light")


def test_an_address_that_a_person_takes_at_the_same_time_is_refused_at_its_field(
    admin: Client, make_board: MakeBoard, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = board_changes.make_board

    def second(values: Any, **more: Any) -> Board:
        make_board("Hall")
        return make(values, **more)

    monkeypatch.setattr(board_changes, "make_board", second)
    answer = send(admin, "/boards/new/", slug="hall")
    assert answer.status_code == 422
    assert 'id="board-slug_error"' in answer.content.decode()
    assert Board.objects.get().made_by == "ada"
    assert store.audit.entries().entries == ()


def test_a_person_that_sees_some_queues_learns_nothing_of_boards_of_hidden_queues(
    client_of: Callable[[Role], Client], make_board: MakeBoard, store: Store
) -> None:
    store.create_queue("mail:in")
    store.create_queue("payroll:board-pay")
    secret = make_board("Payroll", "payroll:*")
    make_board("Mail", "mail:*", "merger-*", rotation=[secret.pk])
    make_board("Lost", "merger-*")
    some = client_of(Role.NONE)
    Grant.objects.create(user=User.objects.get(username="a-none"), glob="mail:*", role="viewer", given_at=NOW)
    page = some.get("/boards/").content.decode()
    assert "/wall/mail" in page
    wall = some.get("/wall/mail")
    assert wall.status_code == 200
    for word in ("ayroll", "merger", "Lost", "lost"):
        assert word not in page
        assert word not in wall.content.decode()
    assert {some.get(f"/wall/{slug}").status_code for slug in ("payroll", "lost", "none")} == {404}
    missing = some.head("/wall/none").headers
    assert (missing["X-Pqadmin-Wall"], missing["X-Robots-Tag"]) == ("missing", "noindex"), "no proxy's 404"
    everything = client_of(Role.VIEWER)
    assert "payroll:*" in everything.get("/boards/").content.decode()
    assert "merger-*" in everything.get("/wall/lost").content.decode()


def test_a_form_that_is_sent_twice_makes_one_board(admin: Client, store: Store) -> None:
    number = re.search(r'name="form_number" value="([^"]+)"', admin.get("/boards/new/").content.decode())
    assert number
    for _time in range(2):
        assert admin.post("/boards/new/", typed(form_number=number.group(1))).status_code == 303
    assert Board.objects.count() == 1


def test_a_screen_that_starts_while_the_store_is_away_waits_for_it(
    admin: Client,
    make_board: MakeBoard,
    monitor: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    make_board("Hall")

    def away() -> None:
        raise StoreUnreachable("away")

    monkeypatch.setattr(monitor, "refresh", away)
    answer = admin.get("/wall/hall")
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "No data yet" in page
    assert 'data-as-of=""' in page
    assert re.search(r"/wall(\.[0-9a-f]{12})?\.js", page), "the socket tells when it is back"
    monkeypatch.setattr("pqadmin.wall.views.read", lambda _slug: (_ for _ in ()).throw(OperationalError("locked")))
    down = admin.get("/wall/hall")
    assert (down.status_code, down["Refresh"]) == (503, "15")
    # As the tables of another release are, while a deploy brings them up to date.
    monkeypatch.setattr("pqadmin.wall.views.read", lambda _slug: (_ for _ in ()).throw(ProgrammingError("no column")))
    broken = admin.get("/wall/hall")
    assert (broken.status_code, broken["Refresh"]) == (500, "15")
    assert "no column" in caplog.text


def test_the_first_picture_has_the_numbers_and_needs_no_script(
    admin: Client, make_board: MakeBoard, store: Store
) -> None:
    make_board("Hall")
    store.create_queue("orders:eu:new").push_many([(b"v", 1)] * 904)
    page = admin.get("/wall/hall").content.decode()
    assert '<b data-field="depth">904</b>' in page
    assert 'http-equiv="refresh"' in page
    assert "style=" not in page
    assert "1 queue" in page


def test_a_board_is_shown_in_its_own_language_or_in_the_screens(
    admin: Client, make_board: MakeBoard, store: Store
) -> None:
    store.create_queue("orders").pause(reason="", by="ops")
    make_board("Hall")

    def shown(asks: str) -> tuple[str, str]:
        answer = admin.get("/wall/hall", headers={"Accept-Language": asks})
        page = answer.content.decode()
        said = re.search(r'data-word="level-warning">([^<]+)<', page)
        assert said, "the words of the script"
        assert f'<html lang="{answer["Content-Language"]}"' in page
        assert said.group(1) in page[: said.start()], "the same in the tile"
        return answer["Content-Language"], said.group(1)

    assert shown("zh-CN,zh;q=0.9,en;q=0.8") == ("zh-hans", "警告")
    assert shown("fr") == ("en", "warning"), "the site's own where it does not speak the screen's"
    assert send(admin, "/boards/hall/", language="zh-hans").status_code == 303
    assert shown("en-GB") == ("zh-hans", "警告")
    (told,) = store.audit.entries(verb="change_board").entries
    assert told.after["language"] == "zh-hans"
