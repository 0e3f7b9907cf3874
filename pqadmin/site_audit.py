"""What people do on the site to anything but queues and items: each act told to the queue store's audit."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _

from pqadmin.store import get_store, store_now
from queues import RequestKey, Transaction
from queues.admin import IdGenerator
from queues.errors import AlreadyDone, OutcomeUnknown, StoreError

log = logging.getLogger(__name__)
_id_generator = IdGenerator(lambda: store_now().timestamp())


@dataclass(slots=True, kw_only=True)
class Author:
    """The author of a change, and the key of the request that asks for it."""

    name: str
    key: RequestKey | None = None
    via: str = "web"
    #: Whether the store keeps an answer of this change, as far as it is known.
    answered: bool = field(default=False, init=False)


@contextmanager
def changing(by: Author) -> Iterator[None]:
    """Open a transaction of the site's tables for an audited change.

    If it fails after `note`, the answer that this kept under the author's key is forgotten: sent again, the request is
    executed. Not so where the connection is lost during the commit, which may have been applied: then it is executed
    once at most. That, or a crash in between, can leave an answer without its change.
    """
    committing = False
    try:
        with transaction.atomic():
            yield
            committing = True
    except Exception:
        uncertain = committing and (connection.connection is None or not connection.is_usable())
        if by.answered and by.key is not None and not uncertain:
            try:
                get_store().forget_answer(by.key.key)
                by.answered = False
            except StoreError as error:
                log.warning("The answer of a change that failed stays under its key: %s", error)
        raise


def note(
    by: str | Author,
    verb: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    queue_id: int | None = None,
    queue: str | None = None,
    result: object = None,
) -> None:
    """Write an audit record of a change of the site's tables; raises StoreError.

    It is called inside the transaction of the tables, with a key in `changing`: a crash in between can leave a record
    without its change, never a change without its record. An author's key is executed once, and keeps the answer that
    it makes of `result`: the second time raises `AlreadyDone`, which undoes the transaction of the tables.
    """
    store, audit_id = get_store(), _id_generator.new_id()
    author = Author(name=by) if isinstance(by, str) else by

    def write(tr: Transaction) -> None:
        store.audit.write(
            tr,
            audit_id,
            actor=author.name,
            via=author.via,
            verb=verb,
            queue_id=queue_id,
            queue=queue,
            count=0,
            before=before,
            after=after,
        )

    def execute(tr: Transaction, answer: bytes) -> bytes:
        write(tr)
        return answer

    try:
        if author.key is None:
            store.transact(write)
            return
        answer = author.key.answer(result)  # it may read the store, which a transaction of the store must not
        first = store.once(author.key.key, partial(execute, answer=answer), content=author.key.content)
    except OutcomeUnknown:  # of the record alone: the tables are as they were
        author.answered = author.key is not None
        raise StoreError(_("It is not certain that the audit has a record of this.")) from None
    if first.repeated:
        raise AlreadyDone(first.value, first.at)
    author.answered = True
