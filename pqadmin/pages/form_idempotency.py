"""Idempotency of forms: a form that is sent twice is executed once, and then gets its first answer.

Each form carries a signed number for its user and purpose, which is the idempotency key of its request: its first
answer is kept in the transaction of the action, in the store or in the site's tables.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.core import signing
from django.forms import Field
from django.http import HttpRequest
from django.utils.translation import gettext as _

from pqadmin import site_audit
from pqadmin.display import format as write
from pqadmin.store import get_store
from queues import RequestKey
from queues.errors import KeyReused, QueueError

FIELD = "form_number"
#: As long as answers are kept; older forms are refused.
KEPT = timedelta(hours=24)


class FormRefused(QueueError):
    """The form was not made here, not for this user or purpose, or is too old. Nothing was done."""

    def __init__(self) -> None:
        super().__init__(_("It is older than a day, or was not made for you by this site. Nothing was changed."))


class FormChanged(QueueError):
    """The form was sent before with other content, which was done. Nothing was done now."""

    def __init__(self) -> None:
        super().__init__(_("What it held then was done. Nothing was done now."))


def number(request: HttpRequest, purpose: str) -> str:
    """Return a new form's number."""
    return _signer(request, purpose).sign(secrets.token_urlsafe(12))


def request_key(
    request: HttpRequest, purpose: str, fields: Mapping[str, Field], answer: Callable[[Any], str]
) -> RequestKey:
    """Return the key of a sent form with these fields; `answer` says where a result leads. Raise `FormRefused`."""
    key, content = _read(request, purpose), _content(request, fields)
    return RequestKey(key=key, content=content, answer=lambda result: answer(result).encode())


def sent_before(request: HttpRequest, purpose: str, fields: Mapping[str, Field]) -> tuple[str, datetime] | None:
    """Return where the first sending of a form led, and when. None unless the same was sent before."""
    try:
        key = RequestKey(key=_read(request, purpose), content=_content(request, fields))
        first = get_store().first_answer(key.key, content=key.content) or site_audit.first_answer(key)
    except (FormRefused, KeyReused):  # refused by the action itself, with the form shown again
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


def _content(request: HttpRequest, fields: Mapping[str, Field]) -> bytes:
    """Return what a form asks for: its address, and what was typed, chosen and uploaded.

    A short form leaves out fields that a long one shows with their defaults: both ask for the same.
    """
    typed = {
        name: [value for value in request.POST.getlist(name) if value not in ("", _default(field))]
        for name, field in fields.items()
    }
    files = {name: [_file_digest(file) for file in request.FILES.getlist(name)] for name in fields}
    return json.dumps([request.path, typed, files]).encode()


def _default(field: Field) -> str:
    initial = field.initial() if callable(field.initial) else field.initial
    return "" if initial is None else str(initial)


def _file_digest(file: Any) -> str:
    file.seek(0)
    digest = sha256(file.read()).hexdigest()
    file.seek(0)
    return digest


def _signer(request: HttpRequest, purpose: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"pqadmin.once:{request.user.pk}:{purpose}")
