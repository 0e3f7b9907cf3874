"""Request keys of forms: a form that is sent twice is executed once, and then gets its first answer.

Each form carries a signed number for its user and purpose, which is the idempotency key of its request: the store keeps
the first answer in the transaction of the action.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.core import signing
from django.http import HttpRequest
from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.store import get_store
from queues import RequestKey
from queues.errors import QueueError

FIELD = "form_number"
#: As long as the store keeps answers; older forms are refused.
KEPT = timedelta(hours=24)


class FormRefused(QueueError):
    """The form was not made here, not for this user or purpose, or is too old. Nothing was done."""

    def __init__(self) -> None:
        super().__init__(_("It is older than a day, or was not made for you by this site. Nothing was changed."))


def number(request: HttpRequest, purpose: str) -> str:
    """Return a new form's number."""
    return _signer(request, purpose).sign(secrets.token_urlsafe(12))


def request_key(request: HttpRequest, purpose: str, answer: Callable[[Any], str]) -> RequestKey:
    """Return the key of a sent form; `answer` says where a result leads. Raise `FormRefused`."""
    return RequestKey(key=_read(request, purpose), answer=lambda result: answer(result).encode())


def sent_before(request: HttpRequest, purpose: str) -> tuple[str, datetime] | None:
    """Return where the first sending of a form led, and when; None for one that is sent the first time."""
    try:
        first = get_store().first_answer(_read(request, purpose))
    except FormRefused:
        return None
    return None if first is None else (first.value.decode(), first.at)


def words(at: datetime) -> str:
    """Say that a form was sent before."""
    return _("This form was already sent at %(at)s. Nothing was done a second time.") % {"at": write.clock(at)}


def _read(request: HttpRequest, purpose: str) -> str:
    try:
        return "form " + _signer(request, purpose).unsign(request.POST.get(FIELD, "")[:300], max_age=KEPT)
    except signing.BadSignature:
        raise FormRefused from None


def _signer(request: HttpRequest, purpose: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"pqadmin.once:{request.user.pk}:{purpose}")
