"""Opening stores: formats, roots, and what is refused."""

import pytest

from queues import open_store
from queues.errors import BadStoreURL, NestedTransaction, NotAStore, QueueNotFound, StoreClosed


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


@pytest.mark.parametrize("url", ["", "lmdb", "lmdb:", "redis:x", "fdb:\x00", "lmdb:\x00"])
def test_a_url_that_names_no_engine_is_refused(url: str) -> None:
    with pytest.raises(BadStoreURL):
        open_store(url)


def test_a_store_is_not_opened_inside_a_transaction() -> None:
    with open_store("memory:") as store, pytest.raises(NestedTransaction):
        store.read(lambda tr: open_store("memory:"))
