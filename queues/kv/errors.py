"""What can go wrong in a store, told alike by every engine.

Every error says what happened and whether anything was written. `queues.errors` re-exports these for
users; nothing outside the engines raises them.
"""

from queues.kv.words import Worded


class StoreError(Worded):
    """The store could not do what was asked; nothing was written."""


class BadStoreURL(StoreError):
    """The store URL names no engine that this package has."""


class StoreUnavailable(StoreError):
    """The store can not be reached or opened now; nothing was written. Try again later."""


class StoreUnreachable(StoreUnavailable):
    """The cluster, or what is needed to reach it, is away; it may come back while this process goes on."""


class StoreReadOnly(StoreUnavailable):
    """The store's folder or file can not be written."""


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
    """The transaction kept losing to others until its tries were used up; nothing was written."""


class OutcomeUnknown(StoreError):
    """The store failed during commit and can not tell whether the transaction was applied."""


class EmbeddedOnly(StoreError):
    """This is done with embedded stores only; a cluster has tools of its own for it."""


class PathTaken(StoreError):
    """Something is in the place where a file or folder was to be made; nothing was changed."""
