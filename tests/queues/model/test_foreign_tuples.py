"""Keys and values that other programs wrote: decoded as the tuple layer does, and never an exception."""

import math
from uuid import UUID

import pytest
from fdb import tuple as layer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queues.model.foreign_tuples import (
    ForeignKey,
    SingleFloat,
    Versionstamp,
    decoded_value,
    describe,
    item_id,
    parse_id,
    unpack,
)

#: A machine at work on something else is no finding.
patiently = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**130), max_value=2**130),
    st.integers(min_value=-70_000, max_value=70_000),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.uuids(),
)
ELEMENTS = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=12)
STAMP = b"\x33" + bytes(range(10)) + b"\x00\x07"
INCOMPLETE = b"\x33" + b"\xff" * 10 + b"\x00\x07"


@patiently
@given(st.lists(ELEMENTS, max_size=5).map(tuple))
def test_every_tuple_that_the_tuple_layer_packs_is_read_back(elements: tuple) -> None:
    assert unpack(layer.pack(elements)) == elements


@patiently
@given(st.binary(max_size=60))
def test_nothing_that_lies_in_a_key_or_value_raises(anything: bytes) -> None:
    for fifo in (False, True):
        key = ForeignKey(anything, fifo)
        assert key.raw == anything.hex()
        assert isinstance(key.priority_text, str)
        assert isinstance(key.text, str)
        assert key.priority is None or isinstance(key.priority, int | float | str)
        assert key.count is None or isinstance(key.count, int)
    decoded = decoded_value(anything)
    assert decoded is None or isinstance(describe(decoded), str)


@patiently
@given(st.lists(ELEMENTS, min_size=1, max_size=5).map(tuple), st.data())
def test_a_cut_tuple_is_either_a_shorter_tuple_or_none(elements: tuple, data: st.DataObject) -> None:
    packed = layer.pack(elements)
    read = unpack(packed[: data.draw(st.integers(0, len(packed) - 1))])
    assert read is None or len(read) <= len(elements)


@pytest.mark.parametrize("number", [0, 255, 256, -255, -256, 2**64 - 1, 2**64, 1 - 2**64, -(2**64), 2**2040 - 1])
def test_integers_are_read_at_the_edges_of_their_encodings(number: int) -> None:
    assert unpack(layer.pack((number,))) == (number,)


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"\x02abc", "a text without an end"),
        (b"\x02\xff\xfe\x00", "a text that is no UTF-8"),
        (b"\x15", "an integer without its byte"),
        (b"\x16\x00\x05", "an integer with a byte too many"),
        (b"\x1d\x02\x01\x01", "a large integer that is small"),
        (b"\x21\x00\x00", "half a double"),
        (b"\x05\x15\x01", "a nested tuple without an end"),
        (b"\x05" * 200 + b"\x00" * 200, "nested too deep to show"),
        (b"\x33\x00", "the beginning of a versionstamp"),
        (b"\xfe", "a code that there is not"),
    ],
)
def test_what_no_tuple_layer_writes_is_raw(packed: bytes, why: str) -> None:
    assert unpack(packed) is None, why
    assert ForeignKey(packed, False).priority_text == packed.hex()


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (layer.pack((5,)), "5"),
        (layer.pack((-1.5,)), "-1.5"),
        (layer.pack(("high",)), "'high'"),
        (layer.pack(("a\u202eb\n",)), "'a\\u202eb\\n'"),
        (layer.pack((b"\x00\xff",)), "b'\\x00\\xff'"),
        (layer.pack((None,)), "None"),
        (layer.pack((True,)), "True"),
        (layer.pack(((1, ("x", None)),)), "(1, ('x', None))"),
        (layer.pack(((1,),)), "(1,)"),
        (layer.pack((UUID(int=1),)), "UUID('00000000-0000-0000-0000-000000000001')"),
        (layer.pack((layer.SingleFloat(0.5),)), "SingleFloat(0.5)"),
        (layer.pack((math.nan,)), "nan"),
        (layer.pack((2**80,)), str(2**80)),
        (STAMP, "Versionstamp(00010203040506070809, 7)"),
        (INCOMPLETE, "Versionstamp(incomplete, 7)"),
    ],
)
def test_any_priority_is_shown(first: bytes, text: str) -> None:
    key = ForeignKey(first + layer.pack((3, b"random")), False)
    assert key.recipe
    assert key.count == 3
    assert key.priority_text == text


def test_elements_keep_their_types() -> None:
    assert unpack(STAMP + INCOMPLETE) == (Versionstamp(bytes(range(10)), 7), Versionstamp(None, 7))
    assert unpack(layer.pack((layer.SingleFloat(0.5),))) == (SingleFloat(0.5),)
    assert [type(element) for element in unpack(layer.pack((1, True, 1.0)))] == [int, bool, float]


def test_only_plain_priorities_are_priorities() -> None:
    def priority(element: object) -> object:
        return ForeignKey(layer.pack((element, 0, b"r")), False).priority

    assert [priority(element) for element in (5, 2.5, "x")] == [5, 2.5, "x"]
    assert [priority(element) for element in (True, None, b"x", math.inf, math.nan, (1,))] == [None] * 6
    assert ForeignKey(layer.pack((5, b"r")), True).priority is None


def test_other_shapes_than_the_recipes_have_no_count() -> None:
    for elements in ((5,), (5, "x", b"r"), (5, True, b"r"), (5, 1, b"r", 2), ()):
        key = ForeignKey(layer.pack(elements), False)
        assert (key.recipe, key.count) == (False, None)
    assert ForeignKey(layer.pack((7, b"r")), True).count == 7


def test_long_elements_are_cut_where_they_are_shown() -> None:
    assert len(describe(("x" * 100_000, b"y" * 100_000))) <= 700
    assert len(describe(tuple(range(50_000)))) <= 700


@patiently
@given(st.binary(min_size=1, max_size=40))
def test_an_id_names_its_key_and_nothing_else_does(suffix: bytes) -> None:
    made = item_id(suffix)
    assert parse_id(made) == suffix
    for other in (made.upper(), made + " ", made[4:], "key-", "key-zz", made.replace("-", "- ")):
        assert parse_id(other) is None


@pytest.mark.parametrize(
    "value", [b"", b"plain", b'{"json": 1}', "été".encode(), b"&", b"!abcdefgh", b"0123456789abcdef0"]
)
def test_text_is_not_taken_for_a_tuple(value: bytes) -> None:
    assert decoded_value(value) is None


def test_packed_values_are_decoded_and_damaged_ones_are_not() -> None:
    assert decoded_value(layer.pack(("text", b"\x00", -3))) == ("text", b"\x00", -3)
    assert decoded_value(layer.pack(("text", b"\x00", -3))[:-1]) is None
    assert decoded_value(layer.pack(("text",)) + b"\xfe") is None
