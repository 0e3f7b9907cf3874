"""Ready keys that are read together: the same as read one by one, whatever they hold."""

from collections import Counter
from typing import Any

from fdb import tuple as layer
from hypothesis import example, given
from hypothesis import strategies as st

from queues.keys.queue_keys import unpacked_suffix
from queues.keys.ready_batch import read_batch
from queues.model.bands import count_bands, default_edges
from queues.model.ids import LAST_MS, SIZE, TIME, minted_ms
from queues.model.priority import PriorityType

times = st.integers(0, 1 << 8 * TIME).map(lambda ms: min(ms, (1 << 8 * TIME) - 1).to_bytes(TIME, "big"))
rests = st.binary(min_size=SIZE - TIME, max_size=SIZE - TIME)
ids = st.tuples(times, rests.map(lambda rest: rest.replace(b"\x00", b"\x01"))).map(b"".join)
#: As other programs may write them.
odd_ids = st.binary(max_size=2 * SIZE) | st.text(max_size=10) | st.integers(-1_000, 1_000)
counts = st.integers(-300, 1 << 64) | st.integers(1 << 39, (1 << 39) + 300)
PRIORITIES: dict[PriorityType, st.SearchStrategy[Any]] = {
    "int": st.integers(-300, 300) | st.integers(-(1 << 64), 1 << 64),
    "float": st.floats(allow_nan=False),
    "str": st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(["", "\x00", "\x00\x00a"]),
}
kinds: st.SearchStrategy[PriorityType | None] = st.sampled_from(["int", "float", "str", None])


def check(kind: PriorityType | None, rows: list[tuple[Any, ...]]) -> None:
    fifo = kind is None
    suffixes = [layer.pack(row[1:] if fifo else row) for row in rows]
    edges = () if kind is None else default_edges(kind)
    batch = read_batch(suffixes, edges, fifo=fifo)
    each = [unpacked_suffix(suffix, fifo=fifo) for suffix in suffixes]
    dated = [rand for _, _, rand, _ in each if isinstance(rand, bytes) and len(rand) == SIZE]
    assert Counter(batch.packed_ids) == Counter(packed_id for _, _, _, packed_id in each)
    assert batch.bands == ({} if fifo else count_bands([row[0] for row in each if row[0] is not None], edges))
    assert batch.created == Counter(ms for ms in map(minted_ms, dated) if ms <= LAST_MS)


@given(st.data(), kinds)
def test_reads_keys_of_this_program_as_one_by_one(data: st.DataObject, kind: PriorityType | None) -> None:
    priorities = st.none() if kind is None else PRIORITIES[kind]
    check(kind, data.draw(st.lists(st.tuples(priorities, counts, ids), min_size=1, max_size=40)))


@given(st.data(), kinds)
def test_reads_keys_of_other_programs_as_one_by_one(data: st.DataObject, kind: PriorityType | None) -> None:
    priorities = st.none() if kind is None else PRIORITIES[kind]
    check(kind, data.draw(st.lists(st.tuples(priorities, counts, ids | odd_ids), min_size=6, max_size=20)))


#: Counts of five bytes without a zero.
COUNTS = [0x81_01_01_01_01 + n for n in range(50)]
#: The key of an item begins within the id of another one.
LOOKS = layer.pack((COUNTS[0], b"\x01" * SIZE))[:-1]
assert LOOKS.count(0) == 0


def with_zeros(places: list[int]) -> bytes:
    """Return an id that takes as many bytes as one of 20 bytes, but has zeros."""
    rand = bytearray(b"\x01" * (SIZE - len(places)))
    for place in places:
        rand[place] = 0
    return bytes(rand)


near = st.one_of(
    st.just(b"\x01" * SIZE),
    st.lists(st.integers(0, 9), max_size=4, unique=True).map(with_zeros),
    st.binary(max_size=4).map(lambda before: before + LOOKS),
    st.text("abc", min_size=SIZE, max_size=SIZE),
)


@given(st.lists(st.tuples(st.just(7), st.sampled_from(COUNTS), near), min_size=6, max_size=9), st.booleans())
@example([(7, COUNTS[0], b"\x01" * SIZE)] * 6 + [(7, COUNTS[0], LOOKS)], False)
@example([(7, COUNTS[0], b"\x01" * SIZE)] * 6 + [(7, COUNTS[0], LOOKS)], True)
@example([(7, COUNTS[0], b"\x01" * SIZE)] * 6 + [(7, COUNTS[0], with_zeros([3]))], False)
@example([(7, COUNTS[0], b"\x01" * SIZE)] * 6 + [(7, COUNTS[0], "a" * SIZE)], False)
@example([(7, COUNTS[0], b"\x01" * SIZE)] * 6 + [(7, COUNTS[0], "a" * SIZE), (7, 0, with_zeros([1]))], False)
def test_is_not_misled_by_keys_that_look_alike(rows: list[tuple[Any, ...]], fifo: bool) -> None:
    check(None if fifo else "int", rows)
