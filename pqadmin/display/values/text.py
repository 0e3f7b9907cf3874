"""Text as HTML: escaped, redacted, with every hidden or reordering character made visible."""

import unicodedata
from collections.abc import Sequence
from html import escape

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.display.redaction import Span

#: Characters that are drawn, and those when all is asked for: more is in the download.
MAX_TEXT, MAX_ALL = 20_000, 400_000


def as_html(text: str) -> SafeString:
    """Escape text; control and bidirectional characters become marked signs, line breaks and tabs stay."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return mark_safe(escape(text))  # noqa: S308 # escaped
    return mark_safe("".join(map(_char, text)))  # noqa: S308 # escaped character by character


def cover() -> str:
    """Return the HTML that stands for what is hidden."""
    word = escape(_("redacted"))
    return f'<span class="redacted">{word}</span>'


def draw(value: bytes, spans: Sequence[Span], *, everything: bool) -> tuple[str, bool]:
    """Draw UTF-8 with the spans covered; return the HTML, and whether it was cut."""
    pieces: list[str] = []
    room = MAX_ALL if everything else MAX_TEXT
    at = 0
    for begin, end in (*spans, (len(value), len(value))):
        text = value[at:begin].decode("utf-8", "replace")
        pieces.append(as_html(text[:room]))
        if len(text) > room:
            return "".join(pieces), True
        room -= len(text)
        if end > begin or begin < len(value):
            pieces.append(cover())
        at = end
    return "".join(pieces), False


def _char(char: str) -> str:
    if char in "\n\t" or not write.hides(char):
        return escape(char)
    name = unicodedata.name(char, "control character")
    return f'<span class="ctl" title="U+{ord(char):04X} {escape(name)}">{escape(write.visible(char))}</span>'
