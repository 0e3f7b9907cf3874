"""Items as text for people, those included that others wrote: any priority, any key, values packed as tuples.

Whatever stands in an attached queue is hostile: text is bounded, and every character that could hide is made visible.
"""

from __future__ import annotations

from functools import lru_cache

from pqadmin.display import format as write
from pqadmin.display.redaction import Redaction
from pqadmin.display.values import one_line
from queues import Item

#: Characters of a key on a line of its own.
KEY_WIDTH = 40
#: Bytes of values whose line is remembered: of those in rows, where the ends of a queue seldom change with its depth.
_SHORT = 256
_again = lru_cache(maxsize=2_048)(one_line)


def priority(item: Item) -> str:
    """Write an item's priority exactly; of what others wrote in the notation of tuples, so that '5' is not 5."""
    if item.foreign is None:
        return write.priority(item.priority)
    return write.visible(item.foreign.priority_text)


def priority_short(item: Item) -> str:
    """Write an item's priority in few characters."""
    return write.middle(priority(item))


def preview(item: Item, rules: Redaction, width: int = write.PREVIEW_WIDTH) -> str:
    """Write an item's value on one line, what rules hide marked."""
    line = one_line if len(item.raw) > _SHORT else _again
    return line(item.raw, rules, width=width, more=item.truncated)


def key(item: Item, limit: int = KEY_WIDTH) -> str:
    """Write the key of an item that others wrote; empty for an item of ours."""
    return "" if item.foreign is None else write.shorten(write.visible(item.foreign.text), limit)
