"""Values as an operator sees them: a JSON tree with exact numbers, text, or a hex dump.

Values are hostile. Nothing here runs or follows what a value says; work is bounded by nodes, depth and characters
whatever was stored; and every character that could hide or reorder others is made visible.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pqadmin.dashboard import format as write

View = Literal["json", "text", "hex"]
VIEWS: tuple[View, ...] = ("json", "text", "hex")

#: Nodes of a JSON tree that are drawn; the rest is in the text and the download.
MAX_NODES = 2_000
#: Nesting that is drawn: deeper is indented out of every screen.
MAX_DEPTH = 64
#: Nodes of an object or array up to which it is drawn open.
OPEN_UP_TO = 40
#: Characters of text and bytes of a dump that are drawn unless all is asked for.
MAX_TEXT = 20_000
MAX_HEX = 4_096
_HEX_LINE = 16


class _Number(str):
    """The digits of a number as they were stored: never converted, so never rounded."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """An object's members in order, repeated names included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A value as HTML. `fits` lists the views that this value has; `cut` says that not all of it is drawn."""

    view: View
    fits: tuple[View, ...]
    html: SafeString
    cut: bool
    note: str = ""


class NotJSON(ValueError):
    """The text is no JSON; the message says where and why."""


def show(value: bytes, *, wanted: str = "", everything: bool = False) -> Shown:
    """Draw a value, by default in the view that its content suggests."""
    text = write.as_text(value)
    tree: Any = None
    fits: tuple[View, ...] = ("hex",)
    if text is not None:
        fits = ("text", "hex")
        try:
            tree = parse_json(text)
        except NotJSON:
            pass
        else:
            fits = VIEWS
    view = next((v for v in fits if v == wanted), fits[0])
    # A bare number or word is JSON too, but reads better as the text it is.
    if not wanted and view == "json" and not isinstance(tree, list):
        view = "text"
    if view == "json":
        drawing = _Tree()
        html = mark_safe("".join(drawing.node(tree, 0, "")))  # noqa: S308 # escaped piece by piece
        return Shown(view="json", fits=fits, html=html, cut=drawing.cut)
    if view == "text" and text is not None:
        room = len(text) if everything else MAX_TEXT
        return Shown(view="text", fits=fits, html=as_html(text[:room]), cut=len(text) > room)
    room = len(value) if everything else MAX_HEX
    return Shown(view="hex", fits=fits, html=mark_safe(_dump(value[:room])), cut=len(value) > room)  # noqa: S308


def parse_json(text: str) -> Any:
    """Read JSON, keeping numbers as their digits and members in order; raise `NotJSON`."""
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as error:
        where = {"line": error.lineno, "column": error.colno}
        raise NotJSON(_("Line %(line)s, column %(column)s is not JSON.") % where) from None
    except RecursionError:
        raise NotJSON(_("This is nested too deeply to be read as JSON.")) from None


def _refuse(constant: str) -> Any:
    raise NotJSON(_("%(constant)s is no JSON value.") % {"constant": constant})


_decoder = json.JSONDecoder(object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_refuse)


class _Tree:
    """Draws one JSON tree as nested lists that open and close without script."""

    def __init__(self) -> None:
        self._left = MAX_NODES
        self.cut = False

    def node(self, node: Any, depth: int, label: str) -> Iterator[str]:
        """Draw a node; `label` is the HTML of the name before it."""
        self._left -= 1
        if isinstance(node, _Object):
            members = ngettext("%(n)s member", "%(n)s members", len(node)) % {"n": write.number(len(node))}
            yield from self._branch(node, depth, label + "{", "}", members)
        elif isinstance(node, list):
            elements = ngettext("%(n)s element", "%(n)s elements", len(node)) % {"n": write.number(len(node))}
            yield from self._branch(node, depth, label + "[", "]", elements)
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
                more = _("%(n)s more are not drawn") % {"n": write.number(len(node) - at)}
                yield f'<li class="c">{write.ELLIPSIS} {escape(more)}</li>'
                break
            yield "<li>"
            if isinstance(node, _Object):
                yield from self.node(member[1], depth + 1, f'<span class="k">{_quoted(member[0])}</span>: ')
            else:
                yield from self.node(member, depth + 1, "")
            yield "</li>"
        yield f"</ul>{closing}</details>"


def _leaf(node: Any) -> str:
    if isinstance(node, _Number):
        return f'<span class="n">{escape(node)}</span>'
    if isinstance(node, str):
        return f'<span class="s">{_quoted(node)}</span>'
    return f'<span class="w">{json.dumps(node)}</span>'


def _quoted(text: str) -> str:
    return f'"{as_html(text)}"' if len(text) <= MAX_TEXT else f'"{as_html(text[:MAX_TEXT])}{write.ELLIPSIS}"'


def as_html(text: str) -> SafeString:
    """Escape text; control and bidirectional characters become marked signs, line breaks and tabs stay."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return mark_safe(escape(text))  # noqa: S308 # escaped
    return mark_safe("".join(map(_char, text)))  # noqa: S308 # escaped character by character


def _char(char: str) -> str:
    if char in "\n\t" or not write.hides(char):
        return escape(char)
    name = unicodedata.name(char, "control character")
    return f'<span class="ctl" title="U+{ord(char):04X} {escape(name)}">{escape(write.visible(char))}</span>'


def _dump(value: bytes) -> str:
    lines = []
    for at in range(0, len(value), _HEX_LINE):
        line = value[at : at + _HEX_LINE]
        pairs = line.hex(" ")
        pairs = f"{pairs[:23]} {pairs[23:]}" if len(line) > 8 else pairs
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in line)
        lines.append(f"{at:06x}  {pairs:<49} {escape(text)}")
    return "\n".join(lines)
