"""Fields of values by their paths, for the list of queues: from what is there of a value, never what rules hide."""

import gzip
import json

import msgpack
import pytest

from pqadmin.display.redaction import MARK, NOTHING, Redaction
from pqadmin.display.values.preview import one_line
from queues import Queue, Store
from tests.dashboard.conftest import Desk

ORDER = {
    "lines": [{"sku": "A-1"}, {"sku": "B\n2"}],
    "customer": {"id": "c42", "iban": "DE00 1234"},
    "total": 17.5,
    "empty": "",
    "none": None,
    "nested": '{"iban": "DE00 1234"}',
}
PACKED = {
    "json": json.dumps(ORDER).encode(),
    "compact": json.dumps(ORDER, separators=(",", ":")).encode(),
    "indented": json.dumps(ORDER, indent=3).encode(),
    "msgpack": msgpack.packb(ORDER),
    "gzip": gzip.compress(json.dumps(ORDER).encode()),
}


@pytest.mark.parametrize("packed", sorted(PACKED))
@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("customer.id", "c42"),
        ("total", "17.5"),
        ("none", "null"),
        ("empty", '""'),
        ("lines.1.sku", "B ↵ 2"),
        ("lines.0", '{"sku": "A-1"}'),
    ],
)
def test_a_field_is_found_by_its_path(packed: str, path: str, shown: str) -> None:
    line = one_line(PACKED[packed], NOTHING, paths=(path,)).removeprefix("gzip: ")
    assert "".join(line.split()) == "".join(shown.split()) or (packed, path) == ("indented", "lines.0")


def test_several_fields_are_shown_and_the_missing_ones_marked() -> None:
    assert one_line(PACKED["json"], NOTHING, paths=("customer.id", "no.such", "total")) == "c42 · – · 17.5"


@pytest.mark.parametrize(
    "path", ["no.such", "customer.id.deeper", "lines.2", "lines.x", "lines.²", "customer.0", "total.0"]
)
@pytest.mark.parametrize("packed", ["json", "msgpack"])
def test_a_value_without_the_fields_shows_its_beginning(packed: str, path: str) -> None:
    assert one_line(PACKED[packed], NOTHING, paths=(path,)) == one_line(PACKED[packed], NOTHING)


def test_what_is_no_object_shows_its_beginning() -> None:
    for value in (
        b"",
        b"text",
        b"[]",
        b"{",
        b'{"customer"',
        b'{"customer":',
        b"\xff\x00",
        b"17",
        b'"id"',
        b"{" * 4_000,
    ):
        assert one_line(value, NOTHING, paths=("customer.id", "0")) == one_line(value, NOTHING)


def test_a_field_is_found_in_a_value_that_is_cut_off() -> None:
    whole = PACKED["json"]
    assert one_line(whole[: whole.index(b"total")], NOTHING, paths=("customer.id",), more=True) == "c42"
    assert one_line(whole[: whole.index(b"42")], NOTHING, paths=("customer.id",), more=True) == "c…"
    assert one_line(whole[: whole.index(b"7.5")], NOTHING, paths=("total",), more=True) == "1…"
    for end in range(len(whole)):
        one_line(whole[:end], NOTHING, paths=("customer.id", "lines.1.sku", "total"), more=True)


@pytest.mark.parametrize("packed", sorted(PACKED))
@pytest.mark.parametrize("rules", [["iban"], ["IB*"], ["customer", "nested"]])
def test_what_rules_hide_stays_hidden_by_whatever_path(packed: str, rules: list[str]) -> None:
    redaction = Redaction(rules)
    for path in ("customer.iban", "customer", "nested", "lines", "customer.id", "iban", "lines.0"):
        assert "1234" not in one_line(PACKED[packed], redaction, paths=(path,), width=200), path
    assert one_line(PACKED[packed], redaction, paths=("customer.iban",)).removeprefix("gzip: ") == MARK
    cut = PACKED[packed][:-5]
    for path in ("customer.iban", "customer", "nested"):
        assert "1234" not in one_line(cut, redaction, paths=(path,), width=200, more=True), path


def test_a_repeated_or_escaped_key_hides_as_well() -> None:
    value = rb'{"ib\u0061n": "1234", "iban": "1234", "a": {"iban": "1234"}, "iban ": "1234"}'
    for path in ("iban", "a.iban", "a"):
        assert "1234" not in one_line(value, Redaction(["iban"]), paths=(path,), width=200), path


def test_the_overview_shows_the_fields_that_the_settings_name(operator: Desk, jobs: Queue) -> None:
    far = {"padding": "x" * 2_000, **ORDER}
    jobs.push_many([(json.dumps(ORDER).encode(), 1), (json.dumps(far).encode(), 9), (b"<b>no json</b>", 20)])
    saved = operator.send(operator.open("/queues/jobs/settings/"), "settings/", preview="customer.id\r\ntotal")
    assert "Saved: preview fields" in saved
    assert operator.open("/queues/jobs/settings/").form("settings/")[1]["preview"] == "customer.id\ntotal"
    row = operator.open("/").rows["jobs"]
    assert row["min"].startswith("1c42 · 17.5")
    assert row["max"].startswith("20<b>no json</b>")
    jobs.pop_max()
    assert operator.open("/").rows["jobs"]["max"].startswith("9c42 · 17.5"), "behind the first 2,000 bytes"
    operator.send(operator.open("/queues/jobs/settings/"), "settings/", redact="customer")
    assert operator.open("/").rows["jobs"]["min"].startswith("1[redacted] · 17.5")
    assert operator.send(operator.open("/queues/jobs/settings/"), "settings/", preview="a..b").status == 422


def test_names_of_few_characters_leave_room(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    assert 'class="col-name short"' in operator.open("/").html
    store.create_queue("jobs:of:a:longer:name:than:that")
    assert 'class="col-name short"' not in operator.open("/").html
