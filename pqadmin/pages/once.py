"""A form works once: double clicks, reloads and replays of a form find the answer of its first sending.

Each form carries a signed number for its user and purpose. The number is noted in the database before the act and
forgotten again if the act was refused, so a refused form can be corrected and sent again. If the process dies in
between, the number stays noted: the act is done once or not at all, never twice.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, IntegrityError, transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _

from pqadmin.accounts import arming
from pqadmin.display import format as write
from pqadmin.pages.models import SentForm
from queues.errors import OutcomeUnknown, QueueError, StoreError

log = logging.getLogger(__name__)

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

    @property
    def words(self) -> str:
        """Say what is known of the first sending: one that broke, or goes on, led nowhere yet."""
        at = {"at": write.clock(self.at)}
        if self.answer:
            return _("This form was already sent at %(at)s. Nothing was done a second time.") % at
        return (
            _(
                "This form was already sent at %(at)s, and it is not known what became of it: it may have been done, "
                "or have failed, or still be at it. This time nothing was done. Look at the queue and at the audit "
                "before you do it anew."
            )
            % at
        )


class CannotNote(StoreError):
    """The form's number cannot be written now; nothing was done."""


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
    """Do what is inside for the first sending only; raise `FormRefused`, `AlreadySent` or `NotArmed`.

    Every form that changes something comes through here, so a read-only site is asked here again: what a view takes
    for a form that only looks cannot change anything by mistake.
    """
    arming.demand(request)
    mine = _read(request, purpose)
    if mine is None:
        raise FormRefused
    _note(mine, clock())
    sending = Sending()
    try:
        yield sending
    except (QueueError, StoreError, PermissionDenied, Http404) as error:
        if not isinstance(error, OutcomeUnknown):
            with _at_best("forget a refused form"):
                SentForm.objects.filter(number=mine).delete()
        raise
    with _at_best("keep where a form led"):
        SentForm.objects.filter(number=mine).update(answer=sending.answer[:1000])


def refuse_replay(request: HttpRequest, purpose: str) -> None:
    """Raise `AlreadySent` if the form was sent before; `once` decides between sendings at the same time."""
    mine = _read(request, purpose)
    sent = None if mine is None else SentForm.objects.filter(number=mine).first()
    if sent is not None:
        raise AlreadySent(sent.at, sent.answer)


def _read(request: HttpRequest, purpose: str) -> str | None:
    try:
        return _signer(request, purpose).unsign(request.POST.get(FIELD, "")[:300], max_age=KEPT)
    except signing.BadSignature:
        return None


def _note(mine: str, now: datetime) -> None:
    try:
        if secrets.randbelow(_SWEEP_EVERY) == 0:
            sweep(now)
        with transaction.atomic():
            SentForm.objects.create(number=mine, at=now)
    except IntegrityError:
        sent = SentForm.objects.filter(number=mine).first()
        raise AlreadySent(sent.at if sent else now, sent.answer if sent else "") from None
    except DatabaseError as error:
        log.warning("a form could not be noted: %s: %s", type(error).__name__, error)
        raise CannotNote(_("The site cannot write its own tables right now, so this was not even begun.")) from None


def sweep(now: datetime) -> None:
    """Forget the numbers of forms that can no longer be sent."""
    SentForm.objects.filter(at__lt=now - 2 * KEPT).delete()


@contextmanager
def _at_best(what: str) -> Iterator[None]:
    """The act is over, done or refused: what fails now must not tell otherwise."""
    try:
        with transaction.atomic():
            yield
    except DatabaseError as error:
        log.warning("could not %s: %s: %s", what, type(error).__name__, error)


def _signer(request: HttpRequest, purpose: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"pqadmin.once:{request.user.pk}:{purpose}")
