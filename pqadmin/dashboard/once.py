"""A form works once: double clicks, reloads and replays of a form find the answer of its first sending.

Each form carries a signed number for its user and purpose. The number is noted in the database before the act and
forgotten again if the act was refused, so a refused form can be corrected and sent again. If the process dies in
between, the number stays noted: the act is done once or not at all, never twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.core import signing
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from pqadmin.dashboard.models import SentForm
from queues.errors import OutcomeUnknown, QueueError, StoreError

FIELD = "form_number"
#: Longer than any shift; older forms are asked for anew.
KEPT = timedelta(hours=24)
#: Old numbers are swept by one form in this many.
_SWEEP_EVERY = 64


class FormRefused(Exception):
    """The form was not made here, not for this person or purpose, or is too old. Nothing was done."""


class AlreadySent(Exception):
    """The form was sent before; `answer` is where that led, empty if it never got so far."""

    def __init__(self, at: datetime, answer: str) -> None:
        self.at = at
        self.answer = answer
        super().__init__(answer)


@dataclass(slots=True)
class Sending:
    """The first sending of a form. Set `answer` to where it leads."""

    answer: str = ""


def number(request: HttpRequest, purpose: str) -> str:
    """Return a new form's number."""
    return _signer(request, purpose).sign(secrets.token_urlsafe(12))


@contextmanager
def once(
    request: HttpRequest, purpose: str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Iterator[Sending]:
    """Do what is inside for the first sending only; raise `FormRefused` or `AlreadySent`."""
    try:
        mine = _signer(request, purpose).unsign(request.POST.get(FIELD, "")[:300], max_age=KEPT)
    except signing.BadSignature:
        raise FormRefused from None
    now = clock()
    if secrets.randbelow(_SWEEP_EVERY) == 0:
        SentForm.objects.filter(at__lt=now - 2 * KEPT).delete()
    try:
        with transaction.atomic():
            SentForm.objects.create(number=mine, at=now)
    except IntegrityError:
        sent = SentForm.objects.filter(number=mine).first()
        raise AlreadySent(sent.at if sent else now, sent.answer if sent else "") from None
    sending = Sending()
    try:
        yield sending
    except (QueueError, StoreError) as error:
        if isinstance(error, OutcomeUnknown):
            raise
        SentForm.objects.filter(number=mine).delete()
        raise
    SentForm.objects.filter(number=mine).update(answer=sending.answer[:1000])


def _signer(request: HttpRequest, purpose: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"pqadmin.once:{request.user.pk}:{purpose}")
