"""Commands on stores with records that cannot be decoded: a clear error or the rest of the work, never a traceback."""

import io
import secrets
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from queues import Store, open_store
from queues.kv.port import KeyValue
from tests.dumps import EVERYTHING

BAD = (b"", b"\x01\x00\x00\x02[]", b"noise!!!!")
COMMANDS = (
    ("queues",),
    ("doctor",),
    ("export_items", "jobs", "/dev/null"),
    ("depth", "jobs"),
    ("peek", "jobs"),
    ("pop", "jobs"),
    ("push", "jobs", "v", "--priority", "1"),
    ("lease", "jobs"),
    ("jobs",),
    ("sweep",),
    ("doctor", "--repair"),
)


def pairs(store: Store) -> list[KeyValue]:
    begin, end = store.context.keyspace.range
    return store.context.kv.read(lambda tr: tr.get_range(begin, end, limit=EVERYTHING).wait())


@pytest.fixture(scope="module")
def whole() -> list[KeyValue]:
    """All keys of a store with an item in every state, and acts."""
    with open_store("memory:") as store:
        ann = store.actions("ann")
        for name in ("jobs", "other"):
            ann.create_queue(name)
        queue = store.queue("jobs")
        queue.push_many([(b"x%d" % n, n) for n in range(3)])
        queue.push(b"later", priority=1, delay=timedelta(hours=1))
        queue.lease(seconds=100)
        first = queue.peek_min()
        ann.delete_items("jobs", [first.id])
        return pairs(store)


@pytest.mark.parametrize("bad", BAD)
def test_no_record_that_cannot_be_read_ends_a_command_in_a_traceback(whole: list[KeyValue], bad: bytes) -> None:
    for key, _ in whole:
        url = f"memory:{secrets.token_hex(8)}"
        with open_store(url) as store:
            store.context.kv.transact(lambda tr: [tr.set(*pair) for pair in whole])
            store.context.kv.transact(lambda tr, key=key: tr.set(key, bad))
            for command in COMMANDS:
                try:
                    call_command(*command, "--store", url, stdout=io.StringIO(), stderr=io.StringIO())
                except CommandError as error:
                    assert str(error)  # noqa: PT017 - most commands go on, as the record is no concern of theirs
                except Exception as error:
                    raise AssertionError(f"{command} ended in a traceback; the damaged key is {key!r}") from error


def test_a_damaged_queue_is_told_by_name_and_the_rest_go_on(whole: list[KeyValue]) -> None:
    url = f"memory:{secrets.token_hex(8)}"
    with open_store(url) as store:
        store.context.kv.transact(
            lambda tr: [tr.set(*pair) for pair in whole if pair[0] != store.context.keyspace.store]
        )
        config = store.context.keyspace.configs.key(store.queue("jobs").id)
        store.context.kv.transact(lambda tr: tr.set(config, b"\x01\x00\x00\x02[]"))
        with pytest.raises(CommandError, match="jobs"):
            call_command("depth", "jobs", "--store", url)
        out = io.StringIO()
        call_command("depth", "other", "--store", url, stdout=out)
        assert out.getvalue().strip()
        out = io.StringIO()
        with pytest.raises(CommandError):
            call_command("doctor", "--store", url, stdout=out)
        assert "jobs" in out.getvalue()
        with pytest.raises(CommandError, match="what store this is"):
            store.context.kv.transact(lambda tr: tr.set(store.context.keyspace.store, b""))
            call_command("queues", "--store", url)
