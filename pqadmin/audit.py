"""What people do on the site to anything but queues and items: each act told to the queue store's audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pqadmin.store import get_store, store_now
from queues import Transaction
from queues.admin import IdGenerator

_id_generator = IdGenerator(lambda: store_now().timestamp())


def note(
    by: str,
    verb: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    queue_id: int | None = None,
    queue: str | None = None,
) -> None:
    """Tell the audit who does what, under a queue if it concerns one; raises StoreError, and then it is not done.

    Where the act is in the site's own tables it is called inside their transaction: a crash in between leaves an entry
    of what was not done, never a deed without an entry.
    """
    store, audit_id = get_store(), _id_generator.new_id()

    def write(tr: Transaction) -> None:
        store.audit.write(
            tr,
            audit_id,
            actor=by,
            via="web",
            verb=verb,
            queue_id=queue_id,
            queue=queue,
            count=0,
            before=before,
            after=after,
        )

    store.transact(write)
