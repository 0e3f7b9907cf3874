"""Items as text, also foreign ones with any priority, key or packed value.

The contents of an attached queue are untrusted: text is bounded, and every hidden character is made visible.
"""

from functools import lru_cache
from zlib import crc32

from pqadmin.display import format as write
from pqadmin.display.error_text import error_text
from pqadmin.display.redaction import Redaction
from pqadmin.display.values import one_line
from queues import Item

#: Characters of a key on a line of its own.
KEY_WIDTH = 40
#: Bytes of values with a cached line: the ends of a queue change less often than its depth.
_SHORT = 256
_again = lru_cache(maxsize=2_048)(one_line)


def priority(item: Item) -> str:
    """Write an item's priority exactly; a foreign one in the notation of tuples, so that '5' is not 5."""
    if item.foreign is None:
        return write.priority(item.priority)
    return write.visible(item.foreign.priority_text)


def priority_short(item: Item) -> str:
    """Write an item's priority in few characters."""
    return write.middle(priority(item))


def preview(item: Item, rules: Redaction, width: int = write.PREVIEW_WIDTH, *, fields: tuple[str, ...] = ()) -> str:
    """Write an item's value, or its fields of these paths, on one line, with marks for what rules hide."""
    line = one_line if len(item.raw) > _SHORT else _again
    return line(item.raw, rules, width=width, more=item.truncated, paths=fields)


def key(item: Item, limit: int = KEY_WIDTH) -> str:
    """Write the key of a foreign item; empty for other items."""
    return "" if item.foreign is None else write.shorten(write.visible(item.foreign.text), limit)


def row_mark(item: Item, rules: Redaction) -> str:
    """Return a mark of what a row shows of an item, times that run aside."""
    line = _again(item.raw[:_SHORT], rules, width=write.PREVIEW_WIDTH, more=item.size > _SHORT)  # however much was read
    why = error_text(item.reason, rules) if item.reason else ""
    told = (item.state, priority(item), item.due_at, item.attempts, item.size, item.worker, item.leased_at)
    return f"{crc32(repr((*told, item.died_at, why, line)).encode()):x}"
