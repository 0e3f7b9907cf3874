"""Items made of the parts of their keys."""

import copy
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.keys.queue_keys import ready_suffix
from queues.model import ids
from queues.model.item import Item, packed, ready_items, unpacked

LOG = ({"number": 1, "worker": "w", "began": 1, "ended": 2},)


@pytest.mark.parametrize("since", [None, 1_795_000_000_000])
@pytest.mark.parametrize("read", [False, True])
def test_an_item_is_like_one_whose_fields_were_given(read: bool, since: int | None) -> None:
    rand = b"\x01\xa2\x00\xa2\x11\x98" + b"r" * 14
    (item,) = ready_items([b"value"], [((3, 70_000, rand), (2, LOG, since))], None)
    if read:
        assert [getattr(item, field.name) for field in fields(item)]
    given_ = Item(
        id=rand.hex(),
        priority=3,
        count=70_000,
        raw=b"value",
        pushed_at=ids.minted_at(rand),
        size=5,
        ready_at=ids.minted_at(rand) if since is None else ids.at(since),
        attempts=2,
        attempt_records=LOG,
    )
    assert item == given_
    assert hash(item) == hash(given_)
    assert repr(item) == repr(given_)
    (again,) = ready_items([b"value"], [((3, 70_000, rand), (2, LOG, since))], None)
    assert pickle.loads(pickle.dumps(again)) == copy.copy(again) == copy.deepcopy(again) == given_
    assert replace(again, priority=4).priority == 4
    assert not again.truncated
    with pytest.raises(AttributeError):
        again.nothing  # noqa: B018
    with pytest.raises(AttributeError):
        again.raw = b""


@given(
    priority=st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.none(),
    count=st.integers(0, 1 << 60),
    rand=st.binary(min_size=20, max_size=20),
    past=st.none() | st.tuples(st.integers(0, 9), st.just(LOG), st.none() | st.integers(0, 1 << 40)),
)
def test_an_item_of_the_end_of_its_key_is_the_same_as_one_of_its_row(
    priority: Any, count: int, rand: bytes, past: Any
) -> None:
    suffix = ready_suffix(priority, count, rand)
    (plain,) = ready_items([b"value"], [((priority, count, rand), past)], None)
    lazy = [ready_items([b"value"], [parts], None) for parts in (suffix if past is None else (suffix, past),) * 2]
    assert packed(lazy[0]) == packed([plain]) == [((priority, count, rand), past)]
    assert unpacked([b"value"], packed(lazy[0]), None) == [plain]
    assert lazy[1] == [plain]
