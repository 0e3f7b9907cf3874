"""What the palette shows: its entries, and what is open on the page that it was called on."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

#: Entries of one answer.
MOST = 20


class Kind(StrEnum):
    """What an entry leads to; also the name of its icon's shape."""

    QUEUE = "queue"
    ITEM = "item"
    PAGE = "page"
    ACT = "act"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is open while the palette is asked: a queue's page, an item of it, or ticked rows of its list."""

    #: The queue's name; empty on pages of no queue.
    queue: str = ""
    #: The id of the item on the open page.
    item: str = ""
    #: The state that the list shows, and how many of its rows are ticked.
    state: str = ""
    selected: int = 0
    #: A script can press the buttons of the page.
    scripted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the palette."""

    kind: Kind
    label: str
    url: str
    detail: str = ""
    #: The level of a queue.
    level: str = ""
    #: An act that takes much away.
    grave: bool = False
    #: The button of the page that it presses: an act on what is ticked, or a choice of the menu, as name=value.
    press: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a text finds, best first; `note` says what was not looked through."""

    entries: Sequence[Entry]
    note: str = ""
