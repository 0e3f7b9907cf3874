"""Fields of a value by their paths, such as `customer.id`: in JSON and msgpack, also where those are cut off."""

import json
import re
from collections.abc import Sequence
from typing import Any

from pqadmin.display import format as write
from pqadmin.display.redaction import MARK, Redaction, Span, covered, end_of, unescaped
from pqadmin.display.values.tree import Members, Number, Roots, name_of, written

_MEMBER = re.compile(rb'[ \t\r\n]*+"((?:[^"\\]++|\\.)*+)"[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL)
_NEXT = re.compile(rb"[ \t\r\n]*+,")
_SPACE = re.compile(rb"[ \t\r\n]*+")


def in_json(value: bytes, paths: Sequence[str], spans: Sequence[Span], *, width: int, more: bool) -> str:
    """Write the fields of JSON that was decoded from UTF-8, what `spans` hide marked. Empty if none is there."""
    return _joined([_text(value, _find(value, path.split(".")), spans, width, more) for path in paths], width)


def in_tree(node: Any, paths: Sequence[str], rules: Redaction, *, width: int) -> str:
    """Write the fields of a tree, what rules hide marked; empty if none is there."""
    return _joined([_leaf(node, path.split("."), rules, width) for path in paths], width)


def _joined(found: Sequence[str | None], width: int) -> str:
    if all(text is None for text in found):
        return ""
    return write.shorten(" · ".join(write.UNKNOWN if text is None else text for text in found), width)


def _find(value: bytes, path: Sequence[str]) -> int | None:
    """Return where the value at a path begins."""
    at = _space(value, 0)
    for step in path:
        member = _step(value, at, step)
        if member is None:
            return None
        at = _space(value, member)
    return at if at < len(value) else None


def _step(value: bytes, at: int, step: str) -> int | None:
    """Return where a member of the object, or an element of the array, begins."""
    first = value[at : at + 1]
    index = int(step) if first == b"[" and step.isascii() and step.isdigit() else -1
    if first != b"{" and index < 0:
        return None
    at += 1
    while True:
        if first == b"{":
            key = _MEMBER.match(value, at)
            if key is None:
                return None
            at = key.end()
            if unescaped(key[1]) == step:
                return at
        else:
            at = _space(value, at)
            if index == 0:
                return None if value[at : at + 1] == b"]" else at
            index -= 1
        comma = _NEXT.match(value, end_of(value, at))
        if comma is None:
            return None
        at = comma.end()


def _space(value: bytes, at: int) -> int:
    found = _SPACE.match(value, at)
    return at if found is None else found.end()


def _text(value: bytes, at: int | None, spans: Sequence[Span], width: int, more: bool) -> str | None:
    if at is None:
        return None
    end = end_of(value, at)
    if any(begin <= at and end <= stop for begin, stop in spans):
        return MARK
    piece, cut = value[at:end], more and end == len(value)
    within = [(max(begin, at) - at, min(stop, end) - at) for begin, stop in spans if begin < end and at < stop]
    if piece[:1] == b'"' and not within:
        try:
            piece = str(json.loads(piece, strict=False)).encode("utf-8", "replace")
        except ValueError:  # it is cut off
            piece, cut = unescaped(piece[1:]).encode("utf-8", "replace"), True
        if not piece:
            return '""'
    return write.preview(covered(piece, within, MARK.encode()), width=width, more=cut)


def _leaf(node: Any, path: Sequence[str], rules: Redaction, width: int) -> str | None:
    for step in path:
        if isinstance(node, Members):
            found = next(((key, member) for key, member in node if name_of(key) == step), None)
            if found is None:
                return None
            if rules.hides(step):
                return MARK
            node = found[1]
        elif isinstance(node, list) and not isinstance(node, Roots) and step.isascii() and step.isdigit():
            if len(step) > 9 or int(step) >= len(node):
                return None
            node = node[int(step)]
        else:
            return None
    plain = isinstance(node, str) and not isinstance(node, Number) and not rules.covers(node)
    line = node if plain and node else written(node, rules, room=width, mark=MARK)
    return write.preview(line.encode("utf-8", "replace"), width=width)
