"""What can go wrong in a store, told alike by every engine.

Every error says what happened and whether anything was written. `queues.errors` re-exports these for
users; nothing outside the engines raises them.
"""

import copyreg
from collections.abc import Mapping
from typing import Any, TypeAlias

Value: TypeAlias = str | int | float


class Words(str):
    """A text in English that remembers its `template` and the `values` in it.

    The template is ours and names its values as `str.format` does; text of users is in the values only, where
    no brace means anything. A template without values is not formatted at all. A value may be `Words` itself.
    """

    template: str
    values: Mapping[str, Value]
    #: False without the full stop that the template ends with: see `within`.
    stops: bool = True

    def __new__(cls, template: str, /, **values: Value) -> "Words":
        """Fill in the values."""
        if not values and isinstance(template, Words):
            return template
        self = super().__new__(cls, template.format(**values) if values else template)
        self.template, self.values = str(template), values
        return self

    def cut_to(self, text: str) -> "Words":
        """Return the same where its English is only the beginning of what the template says."""
        words = Words(text)
        words.template, words.values = self.template, self.values
        return words

    def within(self) -> "Words":
        """Return the same without its full stop, in any language, as it is said within a line about another thing."""
        words = self.cut_to(self.rstrip("."))
        words.stops = False
        return words


class Worded(Exception):
    """An error with a message that can be translated: it is made of a template and its values."""

    #: The place, from 0, of the item that is refused among those of a push of many, where it is known.
    index: int | None = None

    def __init__(self, template: str = "", /, **values: Value) -> None:
        super().__init__(Words(template, **values))

    @property
    def words(self) -> Words:
        """What `str` of the error says, with the template and the values that it was made of."""
        words: Words = self.args[0]
        return words

    def __reduce__(self) -> tuple[Any, ...]:
        """Be copied and pickled as it is: the words of it are no template to begin with."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class StoreError(Worded):
    """The store could not do what was asked; nothing was written."""


class BadStoreURL(StoreError):
    """The store URL names no engine that this package has, or what is given with it cannot be."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or opened now; nothing was written. Try again later."""


class StoreUnreachable(StoreUnavailable):
    """The cluster, or what is needed to reach it, is away. It may come back while this process goes on."""


class StoreReadOnly(StoreUnavailable):
    """The store's folder or file cannot be written."""


class StoreDamaged(StoreUnavailable):
    """The store's file is damaged; restore a backup."""


class StoreFull(StoreUnavailable):
    """No room is left in the store (disk or map); nothing was written. Pops still work."""


class StoreClosed(StoreError):
    """The store was closed; open it again."""


class ForkedStore(StoreError):
    """This store was opened before a fork; open a new one in the child process."""


class NestedTransaction(StoreError):
    """A transaction was begun inside another: pass `tr=` to join the one that is running."""


class KeyTooLarge(StoreError):
    """A key is longer than 511 bytes."""


class ValueTooLarge(StoreError):
    """A value is longer than the store takes."""


class TransactionTooLarge(StoreError):
    """The transaction writes more than one transaction may; nothing was written."""


class TransactionTooOld(StoreError):
    """The transaction ran longer than 5 seconds; nothing was written."""


class TransactionEnded(StoreError):
    """The transaction was used after its function had returned."""


class Conflict(StoreError):
    """The transaction kept losing to other ones until its tries were used up. Nothing was written."""


class OutcomeUnknown(StoreError):
    """The store failed during commit and cannot tell whether the transaction was applied."""


class EmbeddedOnly(StoreError):
    """This is done with embedded stores only. A cluster has tools of its own for it."""


class PathTaken(StoreError):
    """Something is in the place where a file or folder was to be made. Nothing was changed."""
