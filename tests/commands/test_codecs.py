"""Codecs on the command line."""

import base64
from pathlib import Path

import pytest

from tests.commands.conftest import Run, Shop


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_pushed_value_is_encoded_and_shown_decoded(run: Run, shop: Shop, codec: str) -> None:
    assert run("create_queue", "mail", "--codec", codec, "--json").json["codec"] == codec
    item = run("push", "mail", '{"to": [1, "é"]}', "--priority=1", "--json").json["item"]
    assert item["value_json"] == {"to": [1, "é"]}
    run("edit_item", "mail", item["id"], '{"to": 2}')
    assert shop.store.queue("mail").peek_min().value == {"to": 2}
    assert run("peek", "mail", "--json").json["items"][0]["value_json"] == {"to": 2}
    assert run("queues", "--json").json["queues"][0]["codec"] == codec


def test_a_value_that_does_not_decode_is_refused(run: Run, shop: Shop) -> None:
    run("create_queue", "mail", "--codec=json")
    refused = run("push", "mail", "{no", "--priority=1")
    assert refused.code == 1
    assert "mail has the codec json" in refused.error
    assert shop.store.queue("mail").depth() == 0


def test_an_export_of_encoded_values_is_imported_again(run: Run, shop: Shop, tmp_path: Path) -> None:
    old = shop.store.create_queue("old", codec="msgpack")
    old.push_many([({"n": 1}, 1), (b"\xff", 2)])
    file = str(tmp_path / "items.ndjson")
    run("export_items", "old", file)
    assert run("import_items", "new", file, "--create", "--codec=msgpack").code == 0
    assert [item.value for item in shop.store.queue("new").items().items] == [{"n": 1}, b"\xff"]


def test_lines_that_do_not_decode_are_bad_lines(run: Run, shop: Shop, tmp_path: Path) -> None:
    jobs = shop.store.create_queue("jobs", codec="json")
    file = tmp_path / "items.ndjson"
    encoded = base64.b64encode(b"[2]").decode()
    file.write_text(
        f'{{"value_json": [1], "priority": 1}}\n{{"value": "no", "priority": 1}}\n'
        f'{{"value_base64": "{encoded}", "priority": 2}}\n'
    )
    found = run("import_items", "jobs", str(file))
    assert found.code == 3
    assert "codec json" in found.err
    assert [item.value for item in jobs.items().items] == [[1], [2]]


def test_a_stored_value_that_is_nested_too_deeply_is_printed(run: Run, shop: Shop, tmp_path: Path) -> None:
    value = b"[" * 900 + b"]" * 900
    item = shop.store.create_queue("old").push(value, 1)
    shop.store.create_queue("mail", codec="json")
    shop.store.actions("ann").move_items("old", [item.id], to="mail")
    assert "200 levels" in run("push", "mail", value.decode(), "--priority=1").error
    for command in ("peek mail", "peek mail --json", f"show mail {item.id}", f"show mail {item.id} --json"):
        assert run(*command.split()).code == 0, command
    assert run("export_items", "mail", str(tmp_path / "items.csv")).code == 0
    (printed,) = run("pop", "mail", "--json").json["items"]
    assert (printed["value"], "value_json" in printed) == (value.decode(), False)
