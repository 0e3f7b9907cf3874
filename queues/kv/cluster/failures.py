"""What FoundationDB's error codes mean to the port: one table, and the errors that callers see.

Names and numbers are FoundationDB's. A code that is in no table is looked up in the client library.
"""

from __future__ import annotations

import fdb

from queues.kv.errors import KeyTooLarge, StoreError, StoreUnreachable, ValueTooLarge, Words
from queues.kv.exactly_once import MaybeCommitted, NotCommitted, lost_to_others
from queues.kv.limits import too_large, too_old

TRANSACTION_TOO_OLD = 1007
NOT_COMMITTED = 1020
TRANSACTION_TIMED_OUT = 1031
TRANSACTION_TOO_LARGE, KEY_TOO_LARGE, VALUE_TOO_LARGE = 2101, 2102, 2103

#: The transaction wrote nothing and may be tried again.
_AGAIN = {
    1009,  # future_version
    1027,  # coordinators_changed
    1037,  # process_behind
    1042,  # commit_proxy_memory_limit_exceeded
    1051,  # batch_transaction_throttled
    1078,  # grv_proxy_memory_limit_exceeded
    1213,  # tag_throttled
    1223,  # proxy_tag_throttled
}
#: During a commit these leave open whether it was applied, and whether it will be.
_MAYBE = {
    1021,  # commit_unknown_result
    1022,  # commit_unknown_result_fatal
    1025,  # transaction_cancelled
    TRANSACTION_TIMED_OUT,
    1039,  # cluster_version_changed
    1101,  # operation_cancelled
}
#: Nothing that this process does mends it; an operator may.
_UNAVAILABLE = {
    1038: Words("The cluster is locked by an operator (a restore or a disaster-recovery switch); nothing was written."),
    1510: Words("The cluster cannot use its disks; nothing was written."),
    1511: Words("The cluster file is not there."),
    1513: Words("The cluster file cannot be read."),
    1515: Words("No cluster file was found: name one, as in fdb:/etc/foundationdb/fdb.cluster."),
    1516: Words("The cluster file is too large to be one."),
    2104: Words("The cluster file does not hold a connection string."),
}


def silent() -> StoreUnreachable:
    """Build the error of a cluster that does not answer."""
    return StoreUnreachable(
        "The FoundationDB cluster does not answer: nothing was written. Is it running, reachable from here, and of "
        "version 7.3?"
    )


def of_opening(error: fdb.FDBError, cluster_file: str) -> StoreUnreachable:
    """Return what an error means that came while a database was opened."""
    words = _UNAVAILABLE.get(error.code) or _describe(error)
    return (
        StoreUnreachable("{path}: {words}", path=cluster_file, words=words) if cluster_file else StoreUnreachable(words)
    )


def of_reading(error: fdb.FDBError) -> NotCommitted | StoreError:
    """Return what an error means that came before the commit: nothing was written."""
    code = error.code
    if code == TRANSACTION_TOO_OLD:
        return NotCommitted(too_old())
    if code == NOT_COMMITTED:
        return NotCommitted(lost_to_others())
    if code in _MAYBE:
        return NotCommitted(silent())
    if code in _AGAIN:
        return NotCommitted(StoreUnreachable("The cluster is busy or recovering ({reason}).", reason=_describe(error)))
    final = _final(error)
    if final is not None:
        return final
    if fdb.predicates.is_retryable(code):
        return NotCommitted(StoreUnreachable(_describe(error)))
    return StoreError(_describe(error))


def of_commit(error: fdb.FDBError) -> NotCommitted | StoreError:
    """Return what an error means that came out of a commit."""
    code = error.code
    known = code in _AGAIN or code in (TRANSACTION_TOO_OLD, NOT_COMMITTED) or _final(error) is not None
    if code in _MAYBE or (not known and not fdb.predicates.is_retryable_not_committed(code)):
        return MaybeCommitted(silent() if code == TRANSACTION_TIMED_OUT else StoreUnreachable(_describe(error)))
    return of_reading(error)


def _final(error: fdb.FDBError) -> StoreError | None:
    """Return the error of what no retry mends, and of which it is certain that nothing was written."""
    if error.code in _UNAVAILABLE:
        return StoreUnreachable(_UNAVAILABLE[error.code])
    if error.code == TRANSACTION_TOO_LARGE:
        return too_large()
    if error.code == KEY_TOO_LARGE:
        return KeyTooLarge(_describe(error))
    if error.code == VALUE_TOO_LARGE:
        return ValueTooLarge(_describe(error))
    return None


def _describe(error: fdb.FDBError) -> Words:
    text = error.description
    told = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return Words("FoundationDB said: {told} ({code})", told=told, code=error.code)
