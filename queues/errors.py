"""What can go wrong with queues, each with a message that is ready for a person.

A message says what was wrong; unless it says otherwise nothing was changed. It is made of a template and of values
by name (`raise BadName("… has at most {most} characters.", most=…)`), so that the site can say it in other languages;
`make messages` collects the templates. Errors of the store itself come from `queues.kv.errors` and are re-exported
here.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from queues.kv.errors import (
    BadStoreURL,
    Conflict,
    EmbeddedOnly,
    ForkedStore,
    KeyTooLarge,
    NestedTransaction,
    OutcomeUnknown,
    PathTaken,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnreachable,
    TransactionEnded,
    TransactionTooLarge,
    TransactionTooOld,
    Value,
    ValueTooLarge,
    Worded,
    Words,
)

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


if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


__all__ = [
    "AlreadyDone",
    "AlreadyRestored",
    "BadCursor",
    "BadEnd",
    "BadKey",
    "BadLimit",
    "BadName",
    "BadPrefix",
    "BadPriority",
    "BadQueueKind",
    "BadSetting",
    "BadState",
    "BadStoreURL",
    "BadText",
    "BadTime",
    "BadToken",
    "BadValue",
    "ConfirmationMismatch",
    "Conflict",
    "CopyUnfinished",
    "DepthChanged",
    "EmbeddedOnly",
    "ForkedStore",
    "HeadChanged",
    "IdTaken",
    "ItemChanged",
    "ItemGoneOn",
    "ItemLeased",
    "ItemNotFound",
    "JobEnded",
    "JobNotFound",
    "KeyReused",
    "KeyTooLarge",
    "LeaseNotBound",
    "NaiveTime",
    "NestedTransaction",
    "NewerFormat",
    "NotAStore",
    "NotAttached",
    "NotElected",
    "NotForAttached",
    "NotTheRecipe",
    "OlderFormat",
    "OutcomeUnknown",
    "PathTaken",
    "PlaceTaken",
    "PrefixTaken",
    "QueueClosed",
    "QueueError",
    "QueueExists",
    "QueueFull",
    "QueueNotFound",
    "QueuePaused",
    "QueueUnreadable",
    "SameQueue",
    "SettingsChanged",
    "SourceChanged",
    "StaleLease",
    "StillMerging",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnavailable",
    "StoreUnreachable",
    "TargetNotEmpty",
    "TimePassed",
    "TooLarge",
    "TransactionEnded",
    "TransactionTooLarge",
    "TransactionTooOld",
    "TrashNotFound",
    "Unreadable",
    "ValueChanged",
    "ValueTooLarge",
    "Worded",
    "Words",
    "WrongKind",
    "WrongState",
]


class QueueError(Worded):
    """What was asked of a queue could not be done; nothing was changed."""


class QueueNotFound(QueueError, LookupError):
    """No queue has this name. `suggestions` holds names that look alike."""

    def __init__(self, name: str, suggestions: tuple[str, ...] = ()) -> None:
        self.name = name
        self.suggestions = suggestions
        queue = _shown(name)
        if not suggestions:
            super().__init__(Words("No queue is named {queue}.", queue=queue))
            return
        near: str = _shown(suggestions[0])
        for other in suggestions[1:]:
            near = Words("{name} or {other}", name=near, other=_shown(other))
        super().__init__(Words("No queue is named {queue}. Did you mean {name}?", queue=queue, name=near))


class QueueExists(QueueError):
    """A queue of this name exists already."""


class WrongKind(QueueError, TypeError):
    """The verb belongs to the other kind of queue: pop is for priority queues, dequeue for FIFO queues."""


class BadQueueKind(QueueError, ValueError):
    """A queue is of kind 'priority' or 'fifo', its priorities of type 'int', 'float' or 'str'."""


class BadName(QueueError, ValueError):
    """The text cannot be the name of a queue."""


class BadPrefix(QueueError, ValueError):
    """The prefix cannot be that of a subspace that is attached."""


class PrefixTaken(QueueError):
    """The prefix overlaps this store's own keys or those of another attached queue."""


class NotForAttached(QueueError, TypeError):
    """An attached queue belongs to others: this verb would need them to take part."""

    def __init__(self, name: str, why: str, /, **values: Value) -> None:
        words = Words(
            "{queue} is an attached queue, which others write as well: {why}",
            queue=_shown(name),
            why=Words(why, **values),
        )
        super().__init__(words)


class NotAttached(QueueError, TypeError):
    """The verb is for attached queues only."""


class NotTheRecipe(QueueError):
    """Others wrote keys here that are not the recipe's, so that there is no push order to go on from."""


class BadPriority(QueueError, ValueError):
    """The priority does not fit the queue's declared type."""


class BadValue(QueueError, TypeError):
    """An argument has the wrong type: a value that is not bytes, a name or a reason that is not text."""


class BadText(QueueError, ValueError):
    """A reason or a name of a person is no text: it holds half of a surrogate pair."""


class BadSetting(QueueError, ValueError):
    """The setting of a queue cannot be that. `name` is the setting, where it is known."""

    def __init__(self, template: str, name: str = "", /, **values: Value) -> None:
        self.name = name
        super().__init__(template, **values)


class SettingsChanged(QueueError):
    """Settings are not what was seen when they were changed. `changed` holds (seen, now) by name."""

    def __init__(self, template: str, changed: Mapping[str, tuple[object, object]], /, **values: Value) -> None:
        self.changed = changed
        super().__init__(template, **values)


class BadToken(QueueError, ValueError):
    """The text is not the token of a lease."""


class StaleLease(QueueError):
    """The lease is over: it expired, or the item was released, and may have gone to another worker."""


class LeaseNotBound(QueueError, TypeError):
    """The lease knows no queue that could settle it here: it was copied, or is of the other kind of queue."""


class BadTime(QueueError, ValueError):
    """The time or the duration cannot be used."""


class TimePassed(BadTime, BadQueueKind):
    """The time has passed already, where one to come is needed."""


class NaiveTime(BadTime, BadValue):
    """The datetime has no time zone, so it says no moment."""


class BadEnd(BadQueueKind):
    """A queue has no end of this name."""


class BadState(BadQueueKind):
    """Items have no state of this name, or the act is for no item of it."""


class BadCursor(QueueError, ValueError):
    """The cursor was not made by this queue's pages, or was damaged on the way."""


class QueuePaused(QueueError):
    """Taking from this queue is paused; pushing goes on."""


class QueueClosed(QueueError):
    """Pushing to this queue is closed."""


class QueueFull(QueueError):
    """The queue holds as many items as its limit lets in by push or move."""


class TooLarge(QueueError, ValueError):
    """More than one call may carry; one transaction has at most 1,000 items and 5 MB."""


class BadLimit(TooLarge):
    """The number of items, pairs or queues that was asked for is out of range, or no whole number."""


class BadKey(QueueError, ValueError):
    """The key of a space holds what no key can hold, or an idempotency key is empty or too long."""


class AlreadyDone(QueueError):
    """A request with this idempotency key was executed before. `answer` is its first answer, `at` the time."""

    def __init__(self, answer: bytes, at: datetime) -> None:
        super().__init__("This was done already: nothing was done a second time.")
        self.answer = answer
        self.at = at


class KeyReused(QueueError):
    """The idempotency key was used for another request."""


class HeadChanged(QueueError):
    """Another item stands at that end than the one that was confirmed. `item` is the one there now."""

    def __init__(self, template: str, item: Any, /, **values: Value) -> None:
        self.item = item
        super().__init__(template, **values)


class ItemNotFound(QueueError, LookupError):
    """The item is not in the queue: it was taken, or never was there."""


class IdTaken(QueueError):
    """Another item, or another record, has the same id."""


class PlaceTaken(QueueError):
    """Another item stands at the very key that the item would go back to."""


class DepthChanged(QueueError):
    """The depth is not the one that was confirmed. `depth` is the one now."""

    def __init__(self, template: str, depth: int, /, **values: Value) -> None:
        self.depth = depth
        super().__init__(template, **values)


class ConfirmationMismatch(QueueError, ValueError):
    """The name typed to confirm is not the name of the queue."""


class TrashNotFound(QueueError, LookupError):
    """Nothing of this id is in the trash: it was swept after its deadline, or never was there."""


class Unreadable(QueueError):
    """What was asked for is there, but it cannot be read: it is damaged, or of a newer release."""


class QueueUnreadable(Unreadable):
    """What a queue is, or what it holds, cannot be read: damaged, or of a newer release. Other queues are not touched.

    `queue` is its name, `why` says what is the matter.
    """

    def __init__(self, queue: str, why: Words) -> None:
        self.queue = queue
        self.why = why
        super().__init__(Words("The queue {queue} cannot be read. {why}", queue=_shown(queue), why=why))


class AlreadyRestored(QueueError):
    """This was restored from the trash already."""


class ItemGoneOn(QueueError):
    """An act cannot be undone, as items have gone on since. `gone` of `total` items have."""

    def __init__(self, template: str, gone: int, total: int, /, **values: Value) -> None:
        self.gone = gone
        self.total = total
        super().__init__(template, **values)


class ItemLeased(QueueError):
    """The item is in a worker's hands: release its lease first."""


class ItemChanged(QueueError):
    """An item is not as it was seen: somebody changed it meanwhile, or another worker leased it."""


class WrongState(QueueError):
    """The act is for items of another state: only delayed ones are promoted, only dead ones retried."""


class ValueChanged(QueueError):
    """The item has another value than the one that was seen. `item` is the item as it is now."""

    def __init__(self, template: str, item: Any, /, **values: Value) -> None:
        self.item = item
        super().__init__(template, **values)


class SameQueue(QueueError, ValueError):
    """Items are moved from one queue to another one."""


class StillMerging(QueueError):
    """Two purges' items cannot be brought back at once: what the first brought back is still being merged."""


class NotElected(QueueError):
    """Another process does this now: the role was taken over."""


class JobEnded(QueueError):
    """A job cannot go on, or cannot be undone, as it is."""


class JobNotFound(QueueError, LookupError):
    """No act on many items has this id."""


class NewerFormat(StoreError):
    """The store was written by a newer pqadmin than this one."""


class OlderFormat(StoreError):
    """The store was written by pqadmin 0.1: its queues are exported by that release and imported by this one."""


class NotAStore(StoreError):
    """The root holds something that is no pqadmin store."""


class CopyUnfinished(StoreError):
    """The store is the target of a copy that has not reached its end; the same `copy_store` goes on with it."""


class TargetNotEmpty(StoreError):
    """A copy needs an empty target, or one that holds the same copy unfinished; nothing was changed."""


class SourceChanged(StoreError):
    """The store that is copied changed meanwhile, so that the copy is not complete yet."""


def _shown(text: str) -> str:
    from queues.errors import display_name

    shown = display_name(text)
    return f"“{shown}”" if len(shown) <= 80 else f"“{shown[:77]}…”"


def display_name(name: str) -> str:
    """Return the name with every control, bidi or otherwise invisible character written as an escape."""
    if name.isascii() and name.isprintable():
        return name
    return "".join(c if c == " " or (c.isprintable() and not is_invisible(c)) else _escaped(c) for c in name)


def _escaped(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


_NOTHING = ("FILLER", "VARIATION SELECTOR", "GRAPHEME JOINER", "VOWEL INHERENT", "BLANK")

_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


def is_invisible(character: str) -> bool:
    """Say whether a character leaves no mark of its own, be it a letter or not."""
    if character.isascii():
        return not 0x20 < ord(character) < 0x7F
    if unicodedata.category(character) in _CATEGORIES:
        return True
    name = unicodedata.name(character, "")
    return any(words in name for words in _NOTHING)
