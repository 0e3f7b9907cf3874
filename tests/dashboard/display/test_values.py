"""Values of every kind, hostile ones included: what they decode to, and that nothing crashes or runs long."""

import gzip
import json
import struct
import time
import zlib
from typing import Any

import pytest
from fdb import tuple as fdb_tuple
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pqadmin.display.redaction import NOTHING, Redaction
from pqadmin.display.values import msgpack as packing
from pqadmin.display.values import one_line, parse_json, plain, show
from pqadmin.display.values.compressed import MAX_UNPACKED, unpack, unpack_all
from pqadmin.display.values.tree import Members, Number, Other, written

RULES = Redaction(["password", "*token"])
#: Seconds of work that one value may take; usual are milliseconds.
LONG = 4.0


def pack(value: Any) -> bytes:
    """Encode as msgpack, by the specification and nothing of ours."""
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return _pack_int(value)
        case float():
            return b"\xcb" + struct.pack(">d", value)
        case str():
            raw = value.encode()
            head = bytes([0xA0 | len(raw)]) if len(raw) < 32 else b"\xdb" + struct.pack(">I", len(raw))
            return head + raw
        case bytes():
            return b"\xc5" + struct.pack(">H", len(value)) + value
        case list():
            head = bytes([0x90 | len(value)]) if len(value) < 16 else b"\xdc" + struct.pack(">H", len(value))
            return head + b"".join(map(pack, value))
        case dict():
            head = bytes([0x80 | len(value)]) if len(value) < 16 else b"\xde" + struct.pack(">H", len(value))
            return head + b"".join(pack(key) + pack(member) for key, member in value.items())
    raise TypeError(value)


def _pack_int(value: int) -> bytes:
    if 0 <= value < 128 or -32 <= value < 0:
        return bytes([value & 0xFF])
    code, letter = (0xCF, "Q") if value >= 0 else (0xD3, "q")
    return bytes([code]) + struct.pack(f">{letter}", value)


def plainly(node: Any) -> Any:
    """Return a decoded node as what was encoded."""
    if isinstance(node, Members):
        return {plainly(key): plainly(member) for key, member in node}
    if isinstance(node, list):
        return [plainly(element) for element in node]
    if isinstance(node, Number):
        return float(node) if any(c in node for c in ".en") else int(node)
    if isinstance(node, Other) and node.kind.startswith("bin"):
        return bytes.fromhex(node.text[2:-1])
    return node


_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.binary(max_size=60)
)
_trees = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=18) | st.dictionaries(st.text(max_size=8), inner, max_size=18),
    max_leaves=30,
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=25,
)


@given(st.lists(_trees, max_size=20) | st.dictionaries(st.text(max_size=8), _trees, max_size=20))
@settings(max_examples=30, deadline=None)
def test_msgpack_is_read_as_it_was_written(value: Any) -> None:
    unpacked = packing.unpack(pack(value), NOTHING)
    assert unpacked.whole
    assert plainly(unpacked.node) == value
    assert packing.unpack(pack(value) + b"\0", NOTHING) is None, "what follows makes it something else"


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        (b"\x93\xcc\xff\xcd\xff\xff\xce\xff\xff\xff\xff", "[255, 65535, 4294967295]"),
        (b"\x92\xcf" + b"\xff" * 8 + b"\xd3\x80" + b"\0" * 7, "[18446744073709551615, -9223372036854775808]"),
        (b"\x93\xd0\x80\xd1\x80\x00\xe0", "[-128, -32768, -32]"),
        (b"\x92\xca\x3f\x80\x00\x00\xcb\x7f\xf8" + b"\0" * 6, "[1, nan]"),
        (b"\x91\xd6\xff\x00\x00\x00\x00", "[1970-01-01T00:00:00Z]"),
        (b"\x91\xd7\xff\x00\x00\x00\x04\x00\x00\x00\x01", "[1970-01-01T00:00:01.000000001Z]"),
        (b"\x91\xc7\x0c\xff\x00\x00\x00\x00" + b"\xff" * 8, "[1969-12-31T23:59:59Z]"),
        (b"\x91\xd4\x05\xab", "[h'ab']"),
        (b"\x91\xa2\xff\xfe", "[h'fffe']"),
        (b"\x81\xc4\x01k\xa1v", "{h'6b': \"v\"}"),
        (b"\xdd\x00\x00\x00\x01\xd9\x01x", '["x"]'),
        (b"\x80", "{}"),
    ],
)
def test_every_form_of_msgpack_is_written_exactly(encoded: bytes, text: str) -> None:
    unpacked = packing.unpack(encoded, NOTHING)
    assert written(unpacked.node, NOTHING, room=1_000, mark="") == text


@pytest.mark.parametrize(
    "encoded",
    [b"", b"\x01", b"\xa1a", b"\xc1", b"\x91", b"\x91\xc1", b"\x92\x01", b"\xdd\xff\xff\xff\xff", b"\x91" * 200],
)
def test_what_no_encoder_writes_is_no_msgpack(encoded: bytes) -> None:
    assert packing.unpack(encoded, NOTHING) is None


@given(st.data(), st.dictionaries(st.text(max_size=8), _trees, min_size=1, max_size=10))
@settings(max_examples=25, deadline=None)
def test_the_beginning_of_msgpack_is_read_as_far_as_it_goes(data: st.DataObject, value: dict[str, Any]) -> None:
    encoded = pack(value)
    cut = encoded[: data.draw(st.integers(1, len(encoded)))]
    unpacked = packing.unpack(cut, NOTHING, cut=True)
    keys = [key for key, _ in unpacked.node]
    assert keys[:-1] == list(value)[: max(0, len(keys) - 1)]


@given(_json)
@settings(max_examples=30, deadline=None)
def test_json_keeps_its_text(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    stored = text.encode("utf-8", "surrogatepass")
    assert plain(stored) == stored or b"\xed" in stored
    shown = show(stored, rules=NOTHING)
    assert shown.view in ("json", "text", "hex")
    if isinstance(value, list | dict):
        assert json.loads(written(parse_json(text), NOTHING, room=10**6, indent=2, mark="")) == value


@given(st.recursive(_leaves, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=12))
@settings(max_examples=25, deadline=None)
def test_packed_tuples_are_shown_as_tuples_or_as_what_they_read_as(element: Any) -> None:
    stored = fdb_tuple.pack((element, b"\x00\xff"))
    shown = show(stored, rules=NOTHING)
    assert "tuple" in shown.fits or "text" in shown.fits or "msgpack" in shown.fits
    if "tuple" in shown.fits:
        assert plain(stored).decode("utf-8", "replace").startswith("(")


@given(st.binary(max_size=3_000), st.sampled_from(["gzip", "zlib"]))
@settings(max_examples=40, deadline=None)
def test_what_was_packed_is_unpacked(content: bytes, kind: str) -> None:
    packed = gzip.compress(content) if kind == "gzip" else zlib.compress(content)
    unpacked = unpack(packed)
    assert (unpacked.kind, unpacked.data, unpacked.whole) == (kind, content, True)


def test_gzip_shows_what_is_inside_and_how_large_it_was() -> None:
    content = json.dumps({"id": 2**70, "lines": ["x" * 60] * 400}).encode()
    shown = show(gzip.compress(content), rules=NOTHING)
    assert shown.view == "json"
    assert str(2**70) in shown.html
    assert shown.packing == f"gzip, {len(gzip.compress(content))} B → {len(content) / 1000:.1f} kB"
    assert shown.fits == ("json", "text", "hex", "packed")
    assert show(gzip.compress(content), rules=NOTHING, wanted="packed").html.startswith("000000  1f 8b 08")
    assert one_line(gzip.compress(content)[:256], NOTHING, more=True).startswith('gzip: {"id": 1180591620717411303424')
    twice = gzip.compress(zlib.compress(b"deep inside"))
    assert show(twice, rules=NOTHING).html == "deep inside"
    assert one_line(twice, NOTHING) == "gzip: zlib: deep inside"


def test_several_gzip_files_behind_each_other_are_one_value() -> None:
    assert unpack_all(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 20)[0] == b"one two"


def test_a_damaged_gzip_gives_what_can_be_read() -> None:
    noise = bytes(zlib.crc32(bytes([n & 255, n >> 8])) & 0xFF for n in range(6_000))
    packed = bytearray(gzip.compress(b"beginning " + noise, mtime=0))
    shown = show(bytes(packed[: len(packed) // 2]), rules=NOTHING)
    assert "then damaged" in shown.packing
    assert shown.cut
    packed[-1] ^= 1
    assert not unpack(bytes(packed)).whole
    assert show(b"\x1f\x8b\x08nothing like it", rules=NOTHING).view == "hex"


@pytest.mark.parametrize("levels", [1, 2, 3, 6])
def test_decompression_bombs_are_harmless(levels: int) -> None:
    bomb = bytes(30_000_000)
    for _ in range(levels):
        bomb = gzip.compress(bomb, 9)
    began = time.thread_time()
    shown = show(bomb, rules=RULES)
    line = one_line(bomb, RULES)
    assert time.thread_time() - began < LONG
    assert len(shown.html) < 400_000
    assert line.startswith("gzip: ")
    if levels == 1:
        assert "more than 1.0 MB: only its beginning is unpacked" in shown.packing
        assert unpack(bomb).large
        assert len(unpack(bomb).data) == MAX_UNPACKED


_HOSTILE = [
    b"[" * 90_000,
    b'{"a":' * 18_000,
    b'"\\' * 45_000,
    b'{"password":' * 7_500,
    b'{"x token":"' + b"\\" * 89_000,
    b"\x91" * 90_000,
    b"\x81\xa1a" * 30_000,
    b"\xdc\xff\xff" * 30_000,
    b"\xdf\xff\xff\xff\xff" + b"\xa0\xc0" * 40_000,
    b"\x9f" + b"\xdd\x00\x01\x00\x00" * 300,
    b"\xdc\x80\x00" + b"\xc0" * 32_768,
    b"\x05" * 90_000,
    b"\x00" * 90_000,
    b"\x01" + b"\x00\xff" * 40_000 + b"\x00",
    "\u202e\u0000".encode() * 20_000,
    "é".encode() * 45_000,
    zlib.compress(b'{"password": [' + b"[" * 500_000),
    gzip.compress(b"") * 4_000,
    gzip.compress(b"\x9f" + b"\xc0" * 900_000),
    b"token" * 18_000,
    b'"' + b"token" * 10_000 + b'":1',
]


@pytest.mark.parametrize("value", _HOSTILE, ids=range(len(_HOSTILE)))
def test_hostile_values_take_little_time_and_room(value: bytes) -> None:
    began = time.thread_time()
    for wanted in ("", "text", "hex"):
        assert len(show(value, rules=RULES, wanted=wanted).html) < 4_000_000
    plain(value, RULES)
    one_line(value[:256], RULES, more=True)
    assert time.thread_time() - began < LONG


@given(st.binary(max_size=600) | st.text(max_size=300).map(str.encode) | _trees.map(pack), st.booleans())
@example(b"\x80\x80", True)
@settings(max_examples=80, deadline=None)
def test_no_value_crashes(value: bytes, more: bool) -> None:
    shown = show(value, rules=RULES)
    for view in shown.fits:
        again = show(value, rules=RULES, wanted=view, everything=True)
        assert again.view == view
        assert "<script" not in again.html
    assert len(one_line(value, RULES, width=40, more=more)) <= 60
    plain(value, RULES)


def test_a_dump_that_hides_keeps_its_columns() -> None:
    value = b'{"password":"s3cret", "n": 1}'
    lines = show(value, rules=RULES, wanted="hex").html.split("\n")
    bare = show(value, rules=NOTHING, wanted="hex").html.split("\n")
    assert "22 73 33" in "".join(bare)
    assert "22 73 33" not in "".join(lines)
    assert [line.index("  ") for line in lines] == [line.index("  ") for line in bare]
    assert "▒▒" in lines[0] + lines[1]
