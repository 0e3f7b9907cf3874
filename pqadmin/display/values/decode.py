"""The kind of a value: decompressed, decoded, with the parts that rules of redaction hide.

Values are untrusted. Nothing here runs or follows their contents, and work is bounded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pqadmin.display import format as write
from pqadmin.display.redaction import MARK, NOTHING, Redaction, Span, covered, rules_of
from pqadmin.display.values import compressed, hex_dump, msgpack
from pqadmin.display.values.compressed import Unpacked
from pqadmin.display.values.json_text import NotJSON, parse_json
from pqadmin.display.values.nested import Inside, joined, parts
from pqadmin.display.values.tree import written
from queues.admin import Config, TupleElement, decoded_value, describe_element

#: Characters of a tuple or of msgpack written as text.
MAX_WRITTEN = 400_000
#: What stands for a hidden part inside of text that is JSON, so that it still is.
_JSON_MARK = f'"{MARK}"'

Kind = Literal["json", "text", "msgpack", "tuple", "binary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A decoded value."""

    kind: Kind
    #: What is inside of all packings; of text never a broken character at its end.
    data: bytes
    levels: tuple[Unpacked, ...]
    #: Of JSON and msgpack.
    tree: Any
    #: The text of a tuple.
    text: str
    #: Parts of `data` that rules hide.
    spans: tuple[Span, ...]
    #: `data` is all that there is.
    whole: bool
    #: A part is unknown, so rules may hide any of it.
    unseen: bool

    @property
    def hides(self) -> bool:
        """Return whether any of the stored bytes must not be shown."""
        return bool(self.spans) or self.unseen


def look(value: bytes, rules: Redaction, codec: str = "bytes", *, cut: bool = False) -> Look:
    """Decode a value, or with `cut` its beginning, by its queue's codec; `bytes` are decoded as what they look like."""
    data, levels = compressed.unpack_all(value) if codec == "bytes" else (value, ())
    whole = all(level.whole for level in levels) and not cut
    elements = decoded_value(data) if whole and codec == "bytes" else None
    text = None if elements is not None or codec == "msgpack" else write.as_text(data, cut=not whole)
    kind: Kind = "binary"
    tree: Any = None
    written_text = ""
    spans: tuple[Span, ...] = ()
    stopped = False
    if text is not None:
        kind = "text"
        data = data if whole else text.encode()
        spans, stopped = parts(data, rules)
        try:
            if codec != "text":
                tree = parse_json(text)
                kind = "json"
        except NotJSON:
            pass
    elif elements is None and (packed := msgpack.unpack(data, rules, cut=not whole, inside=Inside(rules))) is not None:
        kind, tree, whole, stopped = "msgpack", packed.node, whole and packed.whole, packed.stopped
        spans = joined(packed.spans, rules.spans(data))
    elif elements is not None:
        # JSON inside of a tuple is the same in its bytes and in its text.
        kind, spans, written_text = "tuple", tuple(rules.spans(data)), tuple_text(elements, rules, MAX_WRITTEN)
        if Inside(rules).any(elements):
            spans = ((0, len(data)),)
    else:
        spans, stopped = parts(data, rules)
    # What is cut off right behind a key hides nothing.
    spans = tuple((begin, end) for begin, end in spans if begin < end)
    deeper = len(levels) == compressed.MAX_LEVELS and compressed.unpack(data, limit=1) is not None
    if deeper and rules:
        spans = ((0, len(data)),)  # compressed bytes would reveal their contents
    return Look(
        kind=kind,
        data=data,
        levels=levels,
        tree=tree,
        text=written_text,
        spans=spans,
        whole=whole,
        unseen=bool(rules) and (deeper or stopped or not all(level.whole for level in levels)),
    )


def tuple_text(elements: tuple[TupleElement, ...], rules: Redaction, limit: int) -> str:
    """Write a tuple as text, with what is hidden marked."""
    if Inside(rules).any(elements):
        return MARK
    text = describe_element(elements, limit).encode("utf-8", "replace")
    return covered(text, rules.spans(text), MARK.encode()).decode()


def hidden(value: bytes, rules: Redaction) -> tuple[Span, ...]:
    """Return the parts of the stored bytes that rules hide: all of them where it is inside of a packing."""
    if not rules or not value:
        return ()
    seen = look(value, rules)
    return ((0, len(value)),) if seen.levels and seen.hides else seen.spans


def masked(value: bytes, rules: Redaction) -> bytes:
    """Return the value if nothing of it is hidden, else its redacted text."""
    if not rules or not value:
        return value
    if write.as_text(value) is not None and not compressed.begins_packed(value) and decoded_value(value) is None:
        # Most values are text; for those nothing needs to be decoded.
        spans = [(begin, end) for begin, end in rules.spans(value) if begin < end]
        return covered(value, spans, _JSON_MARK.encode()) if spans else value
    seen = look(value, rules)
    return _plain(seen, rules) if seen.hides else value


def what_searchers_see(config: Config) -> Callable[[bytes], bytes] | None:
    """Return what hides parts of a queue's values from searches, as on pages. None where nothing is hidden."""
    rules = rules_of(config.redact)
    return partial(masked, rules=rules) if rules else None


def plain(value: bytes, rules: Redaction = NOTHING, *, cut: bool = False) -> bytes:
    """Return what a value decodes to as text, what is hidden marked: for copies and downloads."""
    return _plain(look(value, rules, cut=cut), rules)


def _plain(seen: Look, rules: Redaction) -> bytes:
    text = _decoded(seen, rules)
    # A reader must see that there is more.
    cut = not seen.whole or (seen.kind == "binary" and len(seen.data) > hex_dump.MAX_ALL)
    return text + f"\n{write.ELLIPSIS}\n".encode() if cut else text


def _decoded(seen: Look, rules: Redaction) -> bytes:
    if seen.kind in ("json", "text"):
        return covered(seen.data, seen.spans, _JSON_MARK.encode())
    if seen.kind == "msgpack":
        return written(seen.tree, rules, room=MAX_WRITTEN, indent=2, mark=_JSON_MARK).encode("utf-8", "replace")
    if seen.kind == "tuple":
        return seen.text.encode("utf-8", "replace")
    dumped = seen.data[: hex_dump.MAX_ALL]
    return hex_dump.dump(dumped, hex_dump.covers(dumped, seen.spans)).encode()
