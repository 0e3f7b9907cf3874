"""Phrases that several errors say, whole, so that each can be translated."""

from __future__ import annotations

from queues.errors import Words

#: The states of items, as words.
STATE_WORDS = {
    "ready": Words("ready"),
    "delayed": Words("delayed"),
    "leased": Words("leased"),
    "dead": Words("dead"),
}


def some_are(n: int, of: int) -> Words:
    """Say of how many items something is so: “2 of the 5 items are”."""
    if of == 1:
        return Words("The item is")
    if n == 1:
        return Words("1 of the {of:,} items is", of=of)
    return Words("{n:,} of the {of:,} items are", n=n, of=of)


def some_have(n: int, of: int) -> Words:
    """Say how many items have done something: “2 of the 5 items have”."""
    if of == 1:
        return Words("The item has")
    if n == 1:
        return Words("1 of the {of:,} items has", of=of)
    return Words("{n:,} of the {of:,} items have", n=n, of=of)
