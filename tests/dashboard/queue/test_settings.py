"""The settings of a queue on its page: what they show, conflicts, and what cannot be set."""

import json
from collections.abc import Callable

import pytest

from pqadmin.accounts.roles import Role
from queues import Store
from tests.dashboard.conftest import Desk

pytestmark = pytest.mark.usefixtures("jobs")
HERE = "/queues/jobs/settings/"


def test_settings_are_saved_and_shown_again(operator: Desk, store: Store) -> None:
    saved = operator.send(
        operator.open(HERE),
        "settings/",
        note="Ask <b>finance</b> first.\r\nThen purge.",
        runbook="https://wiki.example/orders",
        redact="password\r\n\r\n*token*",
        max_attempts="",
        closed="on",
        max_depth="1 000",
        max_value="500",
        reason="agreed on monday",
    )
    assert saved.path == HERE
    assert "Saved: note, runbook link, redaction rules, attempts, closed for pushes" in saved
    config = store.queue("jobs").config
    assert (config.note, config.runbook) == ("Ask <b>finance</b> first.\nThen purge.", "https://wiki.example/orders")
    assert (config.redact, config.closed) == (("password", "*token*"), True)
    assert (config.max_attempts, config.max_depth, config.max_value) == (None, 1_000, 500)
    fields = operator.open(HERE).form("settings/")[1]
    assert (fields["redact"], fields["max_depth"], fields["max_attempts"]) == ("password\n*token*", "1000", "")
    entry = store.audit.entries(verb="configure").entries[0]
    assert (entry.actor, entry.reason) == ("ada", "agreed on monday")
    assert "Nothing was different" in operator.send(operator.open(HERE), "settings/")
    assert len(store.audit.entries(verb="configure").entries) == 1


@pytest.mark.parametrize(
    ("field", "typed", "why"),
    [
        ("runbook", "javascript:alert(1)", "http:// or https://"),
        ("note", "x" * 1_001, "1,000 characters"),
        ("redact", "x" * 65, "64 characters"),
        ("max_attempts", "soon", "no whole number"),
        ("max_attempts", "0", "1 to 1,000,000"),
        ("max_depth", "-1", "1 to"),
        ("max_value", "90001", "90,000 bytes"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays(
    operator: Desk, store: Store, field: str, typed: str, why: str
) -> None:
    refused = operator.send(operator.open(HERE), "settings/", **{"note": "kept", field: typed})
    assert refused.status == 422
    assert why in refused
    assert f"settings-{field}_error" in refused.html
    fields = refused.form("settings/")[1]
    assert fields[field] == typed
    assert store.queue("jobs").config.note == ""
    good = {"max_attempts": "5", "max_depth": "", "max_value": ""}.get(field, "good")
    if field == "runbook":
        good = "https://wiki.example/"
    assert "Saved" in operator.send(refused, "settings/", note="better", **({field: good} if field != "note" else {}))


def test_all_that_is_wrong_is_said_at_once(operator: Desk, store: Store) -> None:
    wrong = {"max_attempts": "soon", "max_depth": "-1", "note": "x" * 1_001, "target_wait": "ever"}
    refused = operator.send(operator.open(HERE), "settings/", runbook="javascript:alert(1)", **wrong)
    assert refused.status == 422
    for field in ("runbook", *wrong):
        assert f"settings-{field}_error" in refused.html, field


def test_the_second_operator_is_told_of_the_change_and_keeps_the_form(desk: Callable[..., Desk], store: Store) -> None:
    ann, bob = desk(name="ann"), desk(name="bob")
    hers, his = ann.open(HERE), bob.open(HERE)
    ann.send(hers, "settings/", note="by ann", max_attempts="9")
    told = bob.send(his, "settings/", note="by bob", runbook="https://wiki.example/")
    assert told.status == 409
    assert "The settings have changed meanwhile" in told
    assert "ann" in told
    assert "by ann" in told
    assert "you changed it too: saving keeps yours" in told
    fields = told.form("settings/")[1]
    assert (fields["note"], fields["max_attempts"]) == ("by bob", "9")  # his own, and hers where he changed nothing
    assert store.queue("jobs").config.note == "by ann"
    assert "Saved: note, runbook link." in bob.send(told, "settings/")
    config = store.queue("jobs").config
    assert (config.note, config.runbook, config.max_attempts) == ("by bob", "https://wiki.example/", 9)
    assert json.dumps(dict(store.audit.entries(verb="configure").entries[0].before)) == json.dumps(
        {"note": "by ann", "runbook": ""}
    )


def test_an_attached_queue_offers_only_settings_that_other_programs_cannot_ignore(operator: Desk, store: Store) -> None:
    store.attach("theirs", prefix=b"\x15theirs")
    page = operator.open("/queues/theirs/settings/")
    assert not {"max_attempts", "closed", "max_depth"} & set(page.form("settings/")[1])
    assert "would not keep to limits" in page
    assert "Saved: note." in operator.send(page, "settings/", note="of billing")
    assert store.queue("theirs").config.note == "of billing"


def test_settings_gather_the_acts_on_the_whole_queue(operator: Desk, store: Store) -> None:
    links = operator.open(HERE).links
    for act in ("rename", "pause", "purge", "delete"):
        assert f"/queues/jobs/{act}/" in links
    store.attach("theirs", prefix=b"\x15theirs")
    links = operator.open("/queues/theirs/settings/").links
    assert "/queues/theirs/detach/" in links
    assert not {"/queues/theirs/pause/", "/queues/theirs/delete/"} & set(links)


def test_viewers_see_no_settings(desk: Callable[..., Desk]) -> None:
    assert desk(Role.VIEWER).open(HERE).status == 403


def test_a_purged_queue_is_brought_back_from_the_answer(operator: Desk, store: Store) -> None:
    jobs = store.queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(30)])
    before = jobs.items()
    page = operator.open("/queues/jobs/purge/")
    assert "30 items go to the trash." in page
    refused = operator.send(page, "purge/", confirm="job")
    assert refused.status == 422
    assert jobs.depth() == 30
    done = operator.send(refused, "purge/", confirm="jobs", reason="wrong import")
    assert "Purged 30 items." in done
    assert jobs.depth() == 0
    undone = operator.send(done, "restore/")
    assert "30" in undone
    assert jobs.items().items == before.items


def test_a_purge_stops_when_the_number_has_changed(operator: Desk, store: Store) -> None:
    jobs = store.queue("jobs")
    jobs.push_many([(b"%d" % n, n) for n in range(30)])
    page = operator.open("/queues/jobs/purge/")
    jobs.push_many([(b"%d" % n, n) for n in range(20)])
    told = operator.send(page, "purge/", confirm="jobs")
    assert told.status == 409
    assert "50 items go to the trash." in told
    assert jobs.depth() == 50
