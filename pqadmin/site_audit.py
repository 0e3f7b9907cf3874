"""What people do on the site to anything but queues and items: each act told to the queue store's audit.

The answer of a request with a key is kept in the site's tables, in the transaction of the change: see decision 17.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from pqadmin.accounts.models import KeptAnswer
from pqadmin.store import get_store, store_now
from queues import Answer, RequestKey, Transaction
from queues.admin import IdGenerator
from queues.errors import AlreadyDone, KeyReused, OutcomeUnknown, StoreError

#: For how long answers are kept, by the store's clock: that is the same in all processes of the site.
KEPT = timedelta(hours=24)
_id_generator = IdGenerator(lambda: store_now().timestamp())


@dataclass(slots=True, kw_only=True)
class Author:
    """The author of a change, and the key of the request that asks for it."""

    name: str
    key: RequestKey | None = None
    via: str = "web"
    #: Whether `note` kept an answer under the key, which is there as soon as the transaction commits.
    answered: bool = field(default=False, init=False)


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

    It is called inside the transaction of the tables: a crash in between can leave a record without its change, never a
    change without its record. An author's key keeps in that transaction the answer that it makes of `result`: the
    second time raises `AlreadyDone`, which undoes it.
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

    if author.key is not None:
        first = keep_answer(author.key, result)
        if first is not None:
            raise AlreadyDone(first.value, first.at)
        author.answered = True
    try:
        store.transact(write)
    except OutcomeUnknown:  # of the record alone: the tables are as they were
        raise StoreError(_("It is not certain that the audit has a record of this.")) from None


def first_answer(key: RequestKey) -> Answer | None:
    """Return the answer that is kept under a key; raise `KeyReused` if it answers another request."""
    return _answer(key, KeptAnswer.objects.filter(at__gt=store_now() - KEPT))


def keep_answer(key: RequestKey, result: object) -> Answer | None:
    """Keep the answer that a key makes of a result; return the first one if one is kept under it.

    Of two concurrent transactions with one key the second one waits here for the end of the first.
    """
    now, digest = store_now(), _digest(key.key.encode())
    kept = KeptAnswer(key=digest, content=_digest(key.content), value=key.answer(result), at=now)
    KeptAnswer.objects.filter(key=digest, at__lte=now - KEPT).delete()
    try:
        with transaction.atomic():
            kept.save(force_insert=True)
    except IntegrityError:
        return _answer(key, KeptAnswer.objects.all())
    return None


def _answer(key: RequestKey, answers: "QuerySet[KeptAnswer]") -> Answer | None:
    first = answers.filter(key=_digest(key.key.encode())).first()
    if first is None:
        return None
    if first.content != _digest(key.content):
        raise KeyReused("This key was used for another request: nothing was done. Send this one with a new key.")
    return Answer(value=bytes(first.value), at=first.at, repeated=True)


def sweep() -> None:
    """Remove the answers that were kept long enough."""
    KeptAnswer.objects.filter(at__lte=store_now() - KEPT).delete()


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()
