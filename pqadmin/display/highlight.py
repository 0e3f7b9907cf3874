"""Hits of a search: the part of a value or an error around the first one, all hits marked."""

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from pqadmin.display import format as write
from pqadmin.display.redaction import Redaction
from pqadmin.display.values import plain
from queues import Item

#: Characters that are shown before the first hit: few enough that it is in sight in a narrow column.
_BEFORE = 24


def hit(item: Item, text: str, rules: Redaction, *, width: int) -> SafeString | None:
    """Write an item's value on one line from just before the first hit on. None where none is in what is seen of it."""
    return marked(
        write.one_line(plain(item.raw, rules, cut=item.truncated).decode("utf-8", "replace")), text, width=width
    )


def marked(line: str, text: str, *, width: int) -> SafeString | None:
    """Mark the hits in a line, from just before the first one on. None where none is in it."""
    if not text:
        return None
    found = re.compile(re.escape(write.one_line(text)), re.IGNORECASE)
    first = found.search(line)
    if first is None:
        return None
    begin = max(0, first.start() - _BEFORE)
    shown = line[begin : begin + width]
    pieces, at = [write.ELLIPSIS if begin else ""], 0
    for each in found.finditer(shown):
        pieces += [escape(shown[at : each.start()]), f"<mark>{escape(each[0])}</mark>"]
        at = each.end()
    pieces += [escape(shown[at:]), write.ELLIPSIS if begin + width < len(line) else ""]
    return mark_safe("".join(pieces))  # noqa: S308 # escaped piece by piece
