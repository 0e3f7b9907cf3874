"""The audit on its page and as a file: what is asked is what is shown, and no spreadsheet runs any of it."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

from pqadmin.files import audit_export
from pqadmin.files.formula import defused, is_formula
from pqadmin.pages import streaming
from queues import Actions, Store
from queues.errors import StoreUnavailable
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "\u00a0@x", "|calc"]


@pytest.fixture
def busy(store: Store) -> None:
    ann, bob = store.actions("ann"), store.actions("bob", via="cli")
    for name in ("jobs", "mail"):
        ann.create_queue(name)
    ann.push("jobs", b"a", priority=1)
    bob.push("mail", b"b", priority=2)
    bob.pop("mail", reason="<script>alert('why')</script>")
    ann.configure("jobs", note="Ask\nfinance", redact=["pin"])
    ann.pause("jobs", reason="ledger")


def body(desk: Desk, address: str) -> tuple[int, str]:
    response = desk.client.get(address)
    streamed = getattr(response, "streaming", False)
    data = b"".join(response.streaming_content) if streamed else response.content
    return response.status_code, data.decode()


def what(page: Screen) -> str:
    return page.text.split("What was done, and why")[-1]


def test_an_empty_audit_says_what_is_written_there_and_what_is_not(operator: Desk) -> None:
    page = operator.open("/audit/")
    assert "that a person makes on a queue is written here" in page
    assert "but for those by the commands create_user and reset_password" in page


def test_the_size_of_a_value_has_its_unit(operator: Desk, busy: None) -> None:
    assert "priority 1 size 1 B" in what(operator.open("/audit/?verb=push&queue=jobs")).replace("\u202f", " ")


def test_acts_are_found_by_queue_person_verb_item_and_time(operator: Desk, store: Store, busy: None) -> None:
    item = store.audit.entries(verb="pop_min").entries[0].item
    for query, here, not_here in (
        ("queue=mail", "popped min", "paused"),
        ("by=bob", "popped min", "changed settings"),
        ("actor=bob", "popped min", "changed settings"),
        ("verb=pause", "paused", "popped min"),
        (f"item={item}", "popped min", "paused"),
        ("since=1+h", "paused", "No act fits"),
        ("queue=mail&verb=push&by=bob", "pushed", "popped min"),
    ):
        page = operator.open(f"/audit/?{query}")
        assert here in what(page), query
        assert not_here not in what(page), query
    for query in ("until=1+h", "by=carol", "verb=never", "item=" + "0" * 40, "queue=jobs&by=bob", "by=%00%F0%9F%98%80"):
        assert "No act fits" in operator.open(f"/audit/?{query}") or "Nothing was done" not in query


def test_what_was_before_and_after_is_shown(operator: Desk, busy: None) -> None:
    page = operator.open("/audit/?verb=configure")
    assert "note nothing → Ask finance" in what(page)
    assert "redaction rules nothing → pin" in what(page)
    assert "<script>alert" in operator.open("/audit/?verb=pop_min").text  # shown, not run


def test_details_are_written_as_pages_write_them(operator: Desk, store: Store, busy: None) -> None:
    store.actions("ann").pause("mail", reason="", until=datetime(2031, 1, 2, 3, 4, 5, 678_901, UTC))
    page = what(operator.open("/audit/?verb=pause&queue=mail"))
    assert "2031-01-02 03:04:05 UTC" in page
    assert "678901" not in page
    assert "{}" not in what(operator.open("/audit/"))
    store.actions("ann").configure("mail", target_oldest=900.0)
    configured = what(operator.open("/audit/?verb=configure&queue=mail"))
    assert "900" in configured
    assert "900.0" not in configured


def test_a_person_is_found_in_any_letter_case(operator: Desk, store: Store, busy: None) -> None:
    store.actions("Ödön").push("jobs", b"c", priority=1)
    for typed, name in (("BOB", "bob"), ("ödön", "Ödön"), ("Ann", "ann")):
        page = operator.open(f"/audit/?by={quote(typed)}")
        assert name in what(page), typed
        assert "No act fits" not in what(page), typed
    assert "No act fits" in operator.open("/audit/?by=bo")


def test_a_time_that_is_none_is_said_and_nothing_is_shown(operator: Desk, busy: None) -> None:
    for time in ("soon", "2026-13-45", "9" * 60, "<b>"):
        page = operator.open(f"/audit/?since={quote(time)}")
        assert page.status == 200
        assert "Give a length of time" in page
        assert "No act fits" in page
        assert body(operator, f"/audit/export/?since={quote(time)}")[0] == 400


def test_a_queue_that_is_gone_keeps_its_history(operator: Desk, store: Store, busy: None) -> None:
    store.actions("ann").delete_queue("mail", confirm="mail")
    page = operator.open("/audit/?queue=mail")
    assert "No queue has the name “mail” now" in page
    assert "deleted the queue" in what(page)
    assert "popped min" in what(page)


def test_a_new_fifo_queue_has_no_type_of_priorities(operator: Desk, ann: Actions) -> None:
    ann.create_queue("jobs")
    assert "type of priorities" in operator.open("/audit/?queue=jobs")
    ann.create_queue("line", kind="fifo")
    page = operator.open("/audit/?queue=line")
    assert "kind fifo" in page
    assert "type of priorities" not in page


def test_pages_go_by_cursor_and_a_damaged_one_is_said(operator: Desk, ann: Actions) -> None:
    ann.create_queue("jobs")
    for n in range(60):
        ann.push("jobs", b"x", priority=n)
    first = operator.open("/audit/?queue=jobs")
    (older,) = [link for link in first.links if "after=" in link]
    second = operator.open("/audit/" + older)
    assert second.html.count("<tr>") == 12  # 61 acts, 50 of them before, and the header
    assert "created the queue" in what(second)
    assert "damaged" in operator.open("/audit/?after=zz")


@pytest.mark.parametrize("file_format", ["csv", "ndjson"])
def test_the_file_holds_what_the_filters_show_and_all_of_it(
    operator: Desk, store: Store, busy: None, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "STEP", 2)
    status, text = body(operator, f"/audit/export/?format={file_format}")
    whole = store.audit.entries(limit=100).entries
    assert status == 200
    if file_format == "csv":
        rows: list[Any] = list(csv.DictReader(io.StringIO(text, newline="")))
        assert json.loads(rows[1]["after"])["note"] == "Ask\nfinance"
    else:
        rows = [json.loads(line) for line in text.splitlines()]
        assert rows[1]["before"] == {"note": "", "redact": []}
    assert [row["id"] for row in rows] == [entry.id for entry in whole]
    _, part = body(operator, f"/audit/export/?format={file_format}&by=bob&verb=pop_min")
    assert part.count("pop_min") == 1
    assert "pause" not in part


def test_no_cell_of_the_file_is_run_by_a_spreadsheet(operator: Desk, store: Store) -> None:
    ann = store.actions("=cmd()")
    ann.create_queue("jobs")
    for formula in FORMULAS:
        ann.pause("jobs", reason=formula)
    _, text = body(operator, "/audit/export/?format=csv")
    for row in csv.reader(io.StringIO(text, newline=""), quoting=csv.QUOTE_NONNUMERIC):
        for cell in row:
            assert isinstance(cell, str), "a cell without quotes is read as a number"
            assert not is_formula(cell), cell
    reasons = [row["reason"] for row in csv.DictReader(io.StringIO(text, newline=""))]
    assert reasons[-2::-1] == [defused(formula) for formula in FORMULAS]


def test_only_so_many_files_are_written_at_once_and_each_person_has_a_share(
    desk: Callable[..., Desk], busy: None
) -> None:
    ann, bob, carl = desk(name="ann"), desk(name="bob"), desk(name="carl")

    def begin(who: Desk) -> Any:
        return who.client.get("/audit/export/")

    begun = [begin(who) for who in (ann, ann, bob, bob)]
    try:
        assert [response.status_code for response in begun] == [200] * streaming.AT_ONCE
        assert (begin(carl).status_code, begin(carl)["Retry-After"]) == (503, "10")
        begun.pop().close()
        refused = begin(ann)
        assert (refused.status_code, refused["Retry-After"]) == (429, "10")
        assert "Two exports of yours" in refused.content.decode()
        begun.append(begin(carl))
        assert begun[-1].status_code == 200
    finally:
        for response in begun:
            response.close()
    for _ in range(streaming.AT_ONCE + 1):  # each gives its place back, taken whole or dropped
        response = begin(ann)
        assert response.status_code == 200
        next(iter(response.streaming_content))
        response.close()


def _sign_out(user: User) -> None:
    Session.objects.all().delete()


def _deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def _take_role(user: User) -> None:
    user.groups.clear()


@pytest.mark.parametrize("end", [_sign_out, _deactivate, _take_role])
def test_a_file_ends_when_its_reader_loses_the_right(
    operator: Desk, busy: None, monkeypatch: pytest.MonkeyPatch, end: Callable[[User], None]
) -> None:
    monkeypatch.setattr(audit_export, "STEP", 1)
    monkeypatch.setattr(streaming, "LOOK_EVERY", 0.0)
    response = operator.client.get("/audit/export/?format=ndjson")
    parts = iter(response.streaming_content)
    assert "id" in json.loads(next(parts))
    assert "id" in json.loads(next(parts))
    end(User.objects.get(username="ada"))
    (last,) = parts
    assert json.loads(last) == {"error": "INCOMPLETE: You are signed out, or may read here no longer."}
    assert streaming.under_way() == 0


def test_a_file_that_ends_early_says_so(
    operator: Desk, store: Store, busy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "STEP", 2)
    entries, calls = store.audit.entries, []

    def failing(**filters: Any) -> Any:
        calls.append(filters)
        if len(calls) > 2:
            raise StoreUnavailable("The disk is gone.")
        return entries(**filters)

    monkeypatch.setattr(store.audit, "entries", failing)
    _, text = body(operator, "/audit/export/?format=ndjson")
    assert json.loads(text.splitlines()[-1]) == {"error": "INCOMPLETE: The disk is gone."}
    calls.clear()
    assert "INCOMPLETE: The disk is gone." in body(operator, "/audit/export/?format=csv")[1].splitlines()[-1]


def test_the_page_says_how_long_acts_are_kept_and_of_when_the_oldest_is(operator: Desk, settings, busy: None) -> None:
    settings.PQADMIN_AUDIT_DAYS = 30
    page = operator.open("/audit/")
    assert "Acts are kept for 30 days." in page.text
    assert "The oldest one is of" in page.text
    settings.PQADMIN_AUDIT_DAYS = 0
    assert "Acts are kept for ever." in operator.open("/audit/").text
