"""Opening stores: formats, roots, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from queues import open_store
from queues.errors import BadKey, BadStoreURL, BadTime, NestedTransaction, NotAStore, QueueNotFound, StoreClosed


def test_a_store_keeps_its_id_and_its_queues(url: str) -> None:
    with open_store(url) as store:
        store.create_queue("jobs").push(b"x", priority=1)
        store_id = store.id
    with open_store(url) as store:
        assert store.id == store_id
        assert store.queue("jobs").pop_min().value == b"x"


def test_a_queue_has_the_settings_that_are_stored_when_it_is_opened(url: str) -> None:
    with open_store(url) as store:
        store.create_queue("jobs")
        actions = store.actions("ann")
        for rules in (("email",), (), ("email",)):
            actions.configure("jobs", reason="", redact=rules)
            assert store.queue("jobs").config.redact == rules
            store.queue("jobs").push(b"x", priority=1)


def test_two_handles_of_one_path_are_one_store(url: str) -> None:
    with open_store(url) as first, open_store(url) as second:
        first.create_queue("jobs")
        second.queue("jobs").push(b"x", priority=1)
        first.close()
        assert second.queue("jobs").depth() == 1
    with pytest.raises(StoreClosed):
        second.queue("jobs")


def test_roots_do_not_see_each_other(url: str) -> None:
    with open_store(url) as one, open_store(url, root=("other", 7)) as other:
        one.create_queue("jobs")
        assert one.id != other.id
        with pytest.raises(QueueNotFound):
            other.queue("jobs")


def test_a_root_that_holds_something_else_is_left_alone(url: str) -> None:
    with open_store(url, root=("outer", "inner")):
        pass
    with pytest.raises(NotAStore, match="something else"):
        open_store(url, root=("outer",))


@pytest.mark.parametrize("url", ["", "lmdb", "lmdb:", "redis:x", "fdb:\x00", "lmdb:\x00", "lmdb:\ud800"])
def test_a_url_that_names_no_engine_is_refused(url: str) -> None:
    with pytest.raises(BadStoreURL):
        open_store(url)


@pytest.mark.parametrize("of", ["lmdb:{folder}", "memory:", "https://site.example"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_bytes", value) for value in (-1, 0, True, 1.5, "5", float("nan"), 1 << 62, 10**30)),
        *(("root", value) for value in ("pq", b"pq", ["pq"], None, {"pq": 1})),
        *((name, value) for name in ("clock", "wall", "count", "elapsed") for value in (5, "now")),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(tmp_path: Path, of: str, name: str, value: Any) -> None:
    folder = tmp_path / "store"
    with pytest.raises(BadStoreURL, match=f"{name}="):
        open_store(of.format(folder=folder), **{name: value})
    assert not folder.exists()


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"root": ("pq", object())}, BadKey),
        ({"root": ("pq", ("\ud800",))}, BadKey),
        ({"root": (1 << 2_050,)}, BadKey),
        ({"timeout": "soon"}, BadTime),
        ({"timeout": -1}, BadTime),
        ({"token": 5}, BadStoreURL),
    ],
)
def test_nothing_is_created_where_an_option_is_refused(
    tmp_path: Path, options: dict[str, Any], refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        open_store(f"lmdb:{tmp_path}/store", **options)
    assert not (tmp_path / "store").exists()


def test_a_store_is_not_opened_inside_a_transaction() -> None:
    with open_store("memory:") as store, pytest.raises(NestedTransaction):
        store.read(lambda tr: open_store("memory:"))
