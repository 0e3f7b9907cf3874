"""Errors of queues, with messages for persons.

Unless a message says otherwise nothing was changed. A message is a template with values by name (`raise BadName("… has
at most {most} characters.", most=…)`), so that the site can translate it; `make messages` collects the templates.
Errors of the store itself come from `queues.kv.errors` and are re-exported here.
"""

import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from queues.kv.errors import (  # isort: skip # one import of names that are exported again
    BadStoreURL as BadStoreURL,
    Conflict as Conflict,
    EmbeddedOnly as EmbeddedOnly,
    ForkedStore as ForkedStore,
    KeyTooLarge as KeyTooLarge,
    NestedTransaction as NestedTransaction,
    OutcomeUnknown as OutcomeUnknown,
    PathTaken as PathTaken,
    StoreClosed as StoreClosed,
    StoreDamaged as StoreDamaged,
    StoreError as StoreError,
    StoreFull as StoreFull,
    StoreReadOnly as StoreReadOnly,
    StoreUnavailable as StoreUnavailable,
    StoreUnreachable as StoreUnreachable,
    TransactionEnded as TransactionEnded,
    TransactionTooLarge as TransactionTooLarge,
    TransactionTooOld as TransactionTooOld,
    Value as Value,
    ValueTooLarge as ValueTooLarge,
    Worded as Worded,
    Words as Words,
)

#: The states of items, as words.
STATE_WORDS = {
    "ready": Words("ready"),
    "delayed": Words("delayed"),
    "leased": Words("leased"),
    "dead": Words("dead"),
}


def some_are(n: int, of: int) -> Words:
    """Return a phrase such as “2 of the 5 items are”."""
    if of == 1:
        return Words("The item is")
    if n == 1:
        return Words("1 of the {of:,} items is", of=of)
    return Words("{n:,} of the {of:,} items are", n=n, of=of)


def some_have(n: int, of: int) -> Words:
    """Return a phrase such as “2 of the 5 items have”."""
    if of == 1:
        return Words("The item has")
    if n == 1:
        return Words("1 of the {of:,} items has", of=of)
    return Words("{n:,} of the {of:,} items have", n=n, of=of)


class QueueError(Worded):
    """A request to a queue failed; nothing was changed."""


class QueueNotFound(QueueError, LookupError):
    """No queue has this name, or the queue that is meant was renamed or deleted.

    `suggestions` holds names that look alike. With `gone`, the record of the queue that had the name is missing; with
    `name_taken`, another queue has the name than the one that is meant.
    """

    #: Whether names that look alike may help.
    suggests: bool = True

    def __init__(
        self, name: str, suggestions: tuple[str, ...] = (), *, gone: bool = False, name_taken: bool = False
    ) -> None:
        self.name = name
        self.suggestions = suggestions
        self.suggests = not (gone or name_taken)
        queue = _shown(name)
        if gone:
            super().__init__(Words("The queue that had the name {queue} is gone.", queue=queue))
            return
        if name_taken:
            super().__init__(
                Words(
                    "Another queue has the name {queue} now; the queue that is meant was renamed or deleted.",
                    queue=queue,
                )
            )
            return
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


class BadGlob(QueueError, ValueError):
    """The text cannot match the name of any queue, or there are targets for it already."""


class PatternNotFound(QueueError, LookupError):
    """There are no targets for this pattern."""


class BadPrefix(QueueError, ValueError):
    """The prefix cannot be that of a subspace that is attached."""


class PrefixTaken(QueueError):
    """The prefix overlaps this store's own keys or those of another attached queue."""


class NotForAttached(QueueError, TypeError):
    """The verb needs the cooperation of the programs that write an attached queue."""

    def __init__(self, name: str, why: str, /, **values: Value) -> None:
        words = Words(
            "{queue} is an attached queue, which other programs write as well: {why}",
            queue=_shown(name),
            why=Words(why, **values),
        )
        super().__init__(words)


class NotAttached(QueueError, TypeError):
    """The verb is for attached queues only."""


class NotTheRecipe(QueueError):
    """The subspace holds keys that are not the recipe's, so there is no push order to continue."""


class BadPriority(QueueError, ValueError):
    """The priority does not fit the queue's declared type."""


class BadValue(QueueError, TypeError):
    """An argument has the wrong type: a value that is not bytes, a name or a reason that is not text."""


class BadCodec(QueueError, ValueError):
    """A queue's codec is bytes, text, json or msgpack."""


class Undecodable(QueueError, ValueError):
    """The queue's codec cannot decode these bytes: `Item.value` and pushes of `Raw` raise it."""


class BadText(QueueError, ValueError):
    """A reason or a name is no text: it holds a lone surrogate; or a worker's name is not of one line."""


class BadSetting(QueueError, ValueError):
    """A setting of a queue is invalid. `name` is the setting, where it is known."""

    def __init__(self, template: str, name: str = "", /, **values: Value) -> None:
        self.name = name
        super().__init__(template, **values)


class SettingsChanged(QueueError):
    """Settings have changed since they were shown. `changed` holds (shown, now) by name."""

    def __init__(self, template: str, changed: Mapping[str, tuple[object, object]], /, **values: Value) -> None:
        self.changed = changed
        super().__init__(template, **values)


class BadToken(QueueError, ValueError):
    """The text is not the token of a lease, or the lease is of another queue."""


class StaleLease(QueueError):
    """The lease is over: it expired, or the item was released."""


class LeaseNotBound(QueueError, TypeError):
    """The lease is not bound to a queue: it was copied, for example."""


class BadTime(QueueError, ValueError):
    """The time or the duration cannot be used."""


class TimePassed(BadTime, BadQueueKind):
    """The time has passed, but a future one is needed."""


class NaiveTime(BadTime, BadValue):
    """The datetime has no time zone, so it is no moment."""


class BadEnd(BadQueueKind):
    """A queue has no end of this name."""


class BadState(BadQueueKind):
    """There is no state of this name, or the action does not apply to it."""


class BadCursor(QueueError, ValueError):
    """The cursor is of another list, or damaged."""


class QueuePaused(QueueError):
    """Taking from this queue is paused; pushing goes on."""


class QueueClosed(QueueError):
    """Pushing to this queue is closed."""


class QueueFull(QueueError):
    """The queue holds as many items as its limit allows."""


class TooLarge(QueueError, ValueError):
    """The call carries too much; one transaction has at most 1,000 items and 5 MB."""


class BadLimit(TooLarge):
    """The requested number of items, pairs or queues is out of range, or no whole number."""


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
    """Another item than the confirmed one is at that end. `item` is the one there now."""

    def __init__(self, template: str, item: Any, /, **values: Value) -> None:
        self.item = item
        super().__init__(template, **values)


class ItemNotFound(QueueError, LookupError):
    """The item is not in the queue: it was taken, or never existed."""


class IdTaken(QueueError):
    """Another item, or another record, has the same id."""


class PlaceTaken(QueueError):
    """Another item has the place to which the item would return."""


class DepthChanged(QueueError):
    """The depth is not the one that was confirmed. `depth` is the one now."""

    def __init__(self, template: str, depth: int, /, **values: Value) -> None:
        self.depth = depth
        super().__init__(template, **values)


class ConfirmationMismatch(QueueError, ValueError):
    """The name typed for confirmation is not the name of the queue."""


class TrashNotFound(QueueError, LookupError):
    """The trash has no record of this id: it was deleted after its deadline, or never existed."""


class Unreadable(QueueError):
    """A record cannot be read: it is damaged, or of a newer release."""


class QueueUnreadable(Unreadable):
    """A queue's config or items cannot be read: damaged, or of a newer release.

    Other queues are not affected. `queue` is its name, `why` the reason.
    """

    def __init__(self, queue: str, why: Words) -> None:
        self.queue = queue
        self.why = why
        super().__init__(Words("The queue {queue} cannot be read. {why}", queue=_shown(queue), why=why))


class AlreadyRestored(QueueError):
    """This was restored from the trash already."""


class ItemGoneOn(QueueError):
    """An action cannot be undone, as `gone` of its `total` items have changed since."""

    def __init__(self, template: str, gone: int, total: int, /, **values: Value) -> None:
        self.gone = gone
        self.total = total
        super().__init__(template, **values)


class ItemLeased(QueueError):
    """The item is leased by a worker: release its lease first."""


class ItemChanged(QueueError):
    """The item has changed since it was shown, or was leased again."""


class WrongState(QueueError):
    """The action is for items of another state: only dead ones are retried, for example."""


class ValueChanged(QueueError):
    """The item's value has changed since it was shown. `item` is the item as it is now."""

    def __init__(self, template: str, item: Any, /, **values: Value) -> None:
        self.item = item
        super().__init__(template, **values)


class SameQueue(QueueError, ValueError):
    """Source and target of a move are the same queue."""


class StillMerging(QueueError):
    """The items of an undone purge are still being merged; undo the next one later."""


class NotElected(QueueError):
    """Another process has taken over the role."""


class JobEnded(QueueError):
    """A bulk job cannot be resumed or undone in its state."""


class JobNotFound(QueueError, LookupError):
    """No bulk job has this id."""


class NewerFormat(StoreError):
    """The store was written by a newer release."""


class OlderFormat(StoreError):
    """The store was written by pqadmin 0.1: its queues are exported by that release and imported by this one."""


class NotAStore(StoreError):
    """The root holds something that is no pqadmin store."""


class CopyUnfinished(StoreError):
    """The store is the target of an unfinished copy; the same `copy_store` continues it."""


class TargetNotEmpty(StoreError):
    """The target of a copy is neither empty nor the same copy unfinished. Nothing was changed."""


class SourceChanged(StoreError):
    """The source of a copy has changed meanwhile, so the copy is not complete."""


class LocalStoreOnly(StoreError):
    """A store behind a server offers no transactions and no tools: they need the store itself."""


class ServerUnreachable(StoreUnreachable):
    """The server of a store cannot be reached; nothing was written."""


class AnswerLost(OutcomeUnknown):
    """A request was sent to the server of a store, and no answer came: it may have been executed."""


class NotAuthenticated(StoreError):
    """The server of a store does not accept the token: it is missing, wrong, revoked or expired."""


class NotPermitted(StoreError):
    """The token, or its owner, may not do this on the server of a store."""


class RateLimited(StoreUnavailable):
    """The token has sent too many requests to the server of a store."""


class RequestRefused(StoreError):
    """The server of a store refused a request, or is none: it gives no answer that a client understands."""


def _shown(text: str) -> str:
    shown = display_name(text)
    return f"“{shown}”" if len(shown) <= 80 else f"“{shown[:77]}…”"


def display_name(name: str) -> str:
    """Return a name with invisible characters escaped."""
    if name.isascii() and name.isprintable():
        return name
    return "".join(c if c == " " or (c.isprintable() and not is_invisible(c)) else _escaped(c) for c in name)


def _escaped(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


_NOTHING = ("FILLER", "VARIATION SELECTOR", "GRAPHEME JOINER", "VOWEL INHERENT", "BLANK")

_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


def is_invisible(character: str) -> bool:
    """Return whether a character is invisible."""
    if character.isascii():
        return not 0x20 < ord(character) < 0x7F
    if unicodedata.category(character) in _CATEGORIES:
        return True
    name = unicodedata.name(character, "")
    return any(words in name for words in _NOTHING)


#: Every error by its name.
ERRORS = {name: kind for name, kind in list(globals().items()) if isinstance(kind, type) and issubclass(kind, Worded)}
