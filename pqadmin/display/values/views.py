"""A value as HTML, in one of the views that it has."""

from dataclasses import dataclass
from typing import Literal

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.display.redaction import Redaction
from pqadmin.display.values import compressed, hex_dump, text
from pqadmin.display.values.compressed import Unpacked
from pqadmin.display.values.decode import MAX_WRITTEN, Kind, Look, look
from pqadmin.display.values.tree import Tree, written
from queues.admin import Codec

View = Literal["json", "msgpack", "tuple", "text", "hex", "packed"]
VIEWS: tuple[View, ...] = ("json", "msgpack", "tuple", "text", "hex", "packed")

#: The views of what is inside of all packings, the one that fits best first.
_VIEWS: dict[Kind, tuple[View, ...]] = {
    "json": ("json", "text", "hex"),
    "text": ("text", "hex"),
    "msgpack": ("msgpack", "text", "hex"),
    "tuple": ("tuple", "hex"),
    "binary": ("hex",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A value as HTML. `fits` lists the views that this value has; `cut` says that not all of it is drawn."""

    view: View
    fits: tuple[View, ...]
    html: SafeString
    cut: bool
    #: How it is packed: “gzip, 1.2 kB → 30.0 kB”; empty for a value that lies there as it is.
    packing: str
    #: Rules of redaction hide parts of it, or may hide unread parts.
    hides: bool
    #: Not all of it was looked through: it is packed too large, too deep, or damaged.
    unseen: bool

    @property
    def is_tree(self) -> bool:
        """Return whether the HTML is a tree; else it is preformatted text."""
        return self.view in ("json", "msgpack")


def show(
    value: bytes, *, rules: Redaction, codec: Codec | None = None, wanted: str = "", everything: bool = False
) -> Shown:
    """Draw a value, by default in the view that its content suggests."""
    seen = look(value, rules, "bytes" if codec is None else codec.name)
    fits = _VIEWS[seen.kind]
    if seen.levels and not seen.hides:
        fits = (*fits, "packed")
    view = next((v for v in fits if v == wanted), fits[0])
    # A bare number or word is JSON too, but reads better as the text it is.
    if not wanted and view == "json" and not isinstance(seen.tree, list):
        view = "text"
    html, cut = _draw(value, seen, view, rules, everything=everything)
    return Shown(
        view=view,
        fits=fits,
        html=mark_safe(html),  # noqa: S308 # escaped piece by piece
        cut=cut,
        packing="; ".join(map(_packing, seen.levels)),
        hides=seen.hides,
        unseen=seen.unseen and not seen.spans,
    )


def _draw(value: bytes, seen: Look, view: View, rules: Redaction, *, everything: bool) -> tuple[str, bool]:
    if view in ("json", "msgpack"):
        tree = Tree(rules)
        return tree.draw(seen.tree), tree.cut or not seen.whole
    if view == "packed":
        return hex_dump.draw(value, (), everything=everything)
    if view == "hex":
        html, cut = hex_dump.draw(seen.data, seen.spans, everything=everything)
        return html, cut or not seen.whole
    if view == "tuple":
        return text.draw(seen.text.encode("utf-8", "replace"), (), everything=everything)
    if seen.kind == "msgpack":
        mark = "\N{REPLACEMENT CHARACTER}redacted\N{REPLACEMENT CHARACTER}"
        wrote = written(seen.tree, rules, room=MAX_WRITTEN, indent=2, mark=mark)
        html, cut = text.draw(wrote.encode("utf-8", "replace"), (), everything=everything)
        return html.replace(mark, text.cover()), cut or not seen.whole
    html, cut = text.draw(seen.data, seen.spans, everything=everything)
    return html, cut or not seen.whole


def _packing(level: Unpacked) -> str:
    values = {"kind": level.kind, "packed": write.size(level.packed), "size": write.size(len(level.data))}
    if level.large:
        values["size"] = write.size(compressed.MAX_UNPACKED)
        return _("%(kind)s, %(packed)s → more than %(size)s: only its beginning is unpacked") % values
    if not level.whole:
        return _("%(kind)s, %(packed)s → %(size)s, then damaged") % values
    return _("%(kind)s, %(packed)s → %(size)s") % values
