"""Steps: ranges of any length are read in reads of bounded size."""

import pytest

from queues import Store, open_store
from queues.errors import TransactionTooOld
from queues.model.range_in_steps import in_background, pairs


@pytest.fixture
def store() -> Store:
    store = open_store("memory:")
    store.transact(lambda tr: [tr.set(b"app%03d" % n, b"x" * n * 50) for n in range(300)])
    return store


def test_a_range_is_read_whole_in_several_reads(store: Store) -> None:
    reads = []

    def look(fn):
        reads.append(fn)
        if len(reads) % 3 == 0:
            raise TransactionTooOld("Too much for one transaction.")
        return in_background(store.context.kv)(fn)

    found = list(pairs(look, (b"app", b"apq")))
    assert found == [(b"app%03d" % n, b"x" * n * 50) for n in range(300)]
    assert len(reads) > 5
