"""Trees: what JSON, msgpack and tuples decode to, drawn as nested lists that open and close without script."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from django.utils.translation import ngettext

from pqadmin.display import format as write
from pqadmin.display.redaction import MARK, Redaction
from pqadmin.display.values.text import MAX_TEXT, as_html, cover

#: Nodes of a tree that are drawn; the rest is in the text and the download.
MAX_NODES = 2_000
#: Nesting that is drawn: deeper is indented out of every screen.
MAX_DEPTH = 64
#: Nodes of an object or array up to which it is drawn open.
OPEN_UP_TO = 40


class Number(str):
    """The digits of a number as they were stored: never converted, so never rounded."""

    __slots__ = ()


class Members(list[tuple[Any, Any]]):
    """An object's members in order, repeated names included."""


class Roots(list[Any]):
    """Values in a row, without an array around them."""


@dataclass(frozen=True, slots=True)
class Other:
    """What JSON has no words for: bytes, a time, an extension. `text` is how it is written, `kind` what it is."""

    text: str
    kind: str
    #: As text, where it is the name of a member: what rules of redaction compare.
    name: str = ""
    #: Rules hide it for what it holds.
    hidden: bool = False


class Tree:
    """Draws one tree."""

    def __init__(self, rules: Redaction) -> None:
        self._rules = rules
        self._left = MAX_NODES
        self.cut = False

    def draw(self, node: Any) -> str:
        """Return the HTML of a whole tree."""
        return "".join(self._node(node, 0, ""))

    def _node(self, node: Any, depth: int, label: str) -> Iterator[str]:
        """Draw a node; `label` is the HTML of the name before it."""
        self._left -= 1
        if isinstance(node, Members):
            members = ngettext("%(n)s member", "%(n)s members", len(node)) % {"n": write.number(len(node))}
            yield from self._branch(node, depth, label + "{", "}", members)
        elif isinstance(node, Roots):
            values = ngettext("%(n)s value", "%(n)s values behind each other", len(node)) % {
                "n": write.number(len(node))
            }
            yield from self._branch(node, depth, label, "", values)
        elif isinstance(node, list):
            elements = ngettext("%(n)s element", "%(n)s elements", len(node)) % {"n": write.number(len(node))}
            yield from self._branch(node, depth, label + "[", "]", elements)
        elif _covers(self._rules, node):
            yield label + cover()
        else:
            yield label + _leaf(node)

    def _branch(self, node: list[Any], depth: int, opening: str, closing: str, size: str) -> Iterator[str]:
        if not node:
            yield f"{opening}{closing}"
            return
        if depth >= MAX_DEPTH or self._left <= 0:
            self.cut = True
            yield f'{opening}{write.ELLIPSIS}{closing} <span class="c">{escape(size)}</span>'
            return
        is_open = " open" if depth == 0 or len(node) <= OPEN_UP_TO else ""
        yield f'<details{is_open}><summary>{opening} <span class="c">{escape(size)}</span></summary><ul>'
        for at, member in enumerate(node):
            if self._left <= 0:
                self.cut = True
                rest = len(node) - at
                more = ngettext("%(n)s more is not drawn", "%(n)s more are not drawn", rest) % {"n": write.number(rest)}
                yield f'<li class="c">{write.ELLIPSIS} {escape(more)}</li>'
                break
            yield "<li>"
            if isinstance(node, Members):
                yield from self._member(member[0], member[1], depth + 1)
            else:
                yield from self._node(member, depth + 1, "")
            yield "</li>"
        yield f"</ul>{closing}</details>"

    def _member(self, key: Any, node: Any, depth: int) -> Iterator[str]:
        name = cover() if _covers(self._rules, key) else f'<span class="k">{_name(key, self._rules)}</span>'
        label = f"{name}: "
        if self._rules.hides(name_of(key)):
            self._left -= 1
            yield label + cover()
        else:
            yield from self._node(node, depth, label)


def _covers(rules: Redaction, node: Any) -> bool:
    return node.hidden if isinstance(node, Other) else isinstance(node, str) and rules.covers(node)


def name_of(key: Any) -> str:
    """Return a member's name as rules of redaction compare it. Empty for what is no name."""
    if isinstance(key, Other):
        return key.name
    return key if isinstance(key, str) else ""


def written(node: Any, rules: Redaction, *, room: int, indent: int = 0, mark: str) -> str:
    """Write a tree in JSON's notation, at most about `room` characters. `indent` spaces a level, 0: one line.

    Values that JSON cannot express are written in their own notation, so the text is for reading and not for parsing.
    """
    pieces: list[str] = []
    for piece in _written(node, rules, "\n" if indent else "", " " * indent, mark):
        pieces.append(piece)
        room -= len(piece)
        if room < 0:
            pieces.append(write.ELLIPSIS)
            break
    return "".join(pieces)


def _written(node: Any, rules: Redaction, line: str, step: str, mark: str) -> Iterator[str]:
    if _covers(rules, node):
        yield mark
        return
    if not isinstance(node, list) or not node:
        yield "{}" if isinstance(node, Members) else "[]" if isinstance(node, list) else _plain(node)
        return
    if isinstance(node, Roots):
        for at, root in enumerate(node):
            yield (line or " ") if at else ""
            yield from _written(root, rules, line, step, mark)
        return
    within = line + step
    between = "," if line else ", "
    yield "{" if isinstance(node, Members) else "["
    for at, member in enumerate(node):
        yield (between if at else "") + within
        if not isinstance(node, Members):
            yield from _written(member, rules, within, step, mark)
            continue
        key, value = member
        yield "".join(_written(key, rules, "", "", mark)) + ": "
        if rules.hides(name_of(key)):
            yield mark
        else:
            yield from _written(value, rules, within, step, mark)
    yield line + ("}" if isinstance(node, Members) else "]")


def _plain(node: Any) -> str:
    if isinstance(node, Number):
        return str(node)
    if isinstance(node, Other):
        return node.text
    return json.dumps(node, ensure_ascii=False)


def _leaf(node: Any) -> str:
    if isinstance(node, Number):
        return f'<span class="n">{escape(node)}</span>'
    if isinstance(node, str):
        return f'<span class="s">{_quoted(node)}</span>'
    if isinstance(node, Other):
        return f'<span class="o">{_cut(node.text)}</span> <span class="c">{escape(node.kind)}</span>'
    return f'<span class="w">{json.dumps(node)}</span>'


def _name(key: Any, rules: Redaction) -> str:
    if isinstance(key, str) and not isinstance(key, Number):
        return _quoted(key)
    return _cut(_plain(key)) if not isinstance(key, list) else _cut(written(key, rules, room=200, mark=MARK))


def _quoted(text: str) -> str:
    return f'"{_cut(text)}"'


def _cut(text: str) -> str:
    return as_html(text) if len(text) <= MAX_TEXT else as_html(text[:MAX_TEXT]) + write.ELLIPSIS
