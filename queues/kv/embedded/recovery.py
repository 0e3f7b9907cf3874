"""Recovery from a power cut: the file goes back to its checkpoint, and records of the log are executed again."""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import lmdb

from queues.kv.embedded import damage, meta_pages
from queues.kv.embedded.failures import reason
from queues.kv.embedded.meta_pages import MetaPages
from queues.kv.embedded.write_ahead_log import NAME, Checkpoint, Record, unpack
from queues.kv.errors import StoreUnavailable

log = logging.getLogger("queues.kv")


def set_back(folder: Path, checkpoint: Checkpoint) -> None:
    """Put a checkpoint's meta pages back into the file. Raises StoreError, OSError."""
    metas = MetaPages.of(checkpoint.metas)
    try:
        descriptor = os.open(folder / "data.mdb", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _of_another_file(folder) from None
    try:
        if os.fstat(descriptor).st_size < (max((1, *metas.roots)) + 1) * metas.page_size:
            raise damage.damaged(str(folder), "its file data.mdb was cut off")
        if metas.digest_of_roots(descriptor) != checkpoint.roots:
            raise _of_another_file(folder)
        meta_pages.write(descriptor, metas)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def execute_again(
    folder: Path,
    env: lmdb.Environment,
    lost: Sequence[Record],
    make_checkpoint: Callable[[lmdb.Environment, int], None],
) -> None:
    """Execute the records that the file has lost, and make a checkpoint of the last. Raises StoreUnavailable."""
    try:
        with env.begin():  # keeps the checkpoint's pages, as this may be cut off, too
            for record in lost:
                if record.large:  # it was never acknowledged on its record alone
                    break
                _execute(env, record)
            with env.begin(write=True) as txn:
                make_checkpoint(env, txn.id() - 1)
    except (lmdb.Error, OSError) as error:
        raise StoreUnavailable(
            "The store {path} has lost its newest transactions, and what its file {log} holds of them cannot "
            "be written: {reason}. Make room, keep both files, and open it again.",
            path=str(folder),
            log=NAME,
            reason=reason(error),
        ) from error
    executed = sum(not record.large for record in lost)
    log.warning("%d transactions of %s were executed again from its log", executed, folder)


def _execute(env: lmdb.Environment, record: Record) -> None:
    with env.begin(write=True) as txn:
        if txn.id() != record.txnid:
            raise OSError(f"commit {record.txnid} cannot follow commit {txn.id() - 1}")
        for key, value in unpack(record.pairs).items():
            if value is None:
                txn.delete(key)
            else:
                txn.put(key, value)


def _of_another_file(folder: Path) -> StoreUnavailable:
    return StoreUnavailable(
        "The file {log} of the store {path} holds transactions of another file data.mdb than the one that is "
        "there. Put that one back, or move {log} away to go on without them. Nothing was changed.",
        log=NAME,
        path=str(folder),
    )
