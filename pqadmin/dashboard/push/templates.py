"""Push templates: filled-in push forms with a name, shared by all users of a queue."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from django import forms
from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from pqadmin.dashboard.models import PushTemplate
from pqadmin.display import format as write
from pqadmin.site_audit import note

log = logging.getLogger(__name__)

#: Templates of one queue.
MOST = 50
MAX_NAME = 80
_FIELDS = ("value", "encoding", "priority", "when", "delay", "unit", "due", "zone")


def of(queue_id: int) -> Sequence[PushTemplate]:
    """Return the templates of a queue by name; none while the site's tables cannot be read."""
    try:
        with transaction.atomic():
            found = PushTemplate.objects.filter(queue_id=queue_id).defer("fields").order_by("name")
            return list(found[:MOST])
    except DatabaseError as error:
        log.warning("push templates could not be read: %s: %s", type(error).__name__, error)
        return []


def get(queue_id: int, number: str) -> PushTemplate | None:
    """Return a template of a queue; None when it is not there."""
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return None
    return PushTemplate.objects.filter(queue_id=queue_id, pk=int(number)).first()


def keep(queue_id: int, queue: str, name: str, form: forms.Form, *, by: str) -> str:
    """Keep what is typed in a form under a name, in place of what was kept under it; return what is wrong with that."""
    name = " ".join(name.split())
    if not name:
        return _("A template needs a name.")
    if len(name) > MAX_NAME or not name.isprintable():
        return _("A template's name has at most %(n)s characters, all of which can be seen.") % {
            "n": write.number(MAX_NAME)
        }
    if {"too_long", "max_length"} & {error.code for errors in form.errors.as_data().values() for error in errors}:
        return _("This is more than a form can hold.")
    fields = {field: str(form[field].value() or "") for field in _FIELDS if field in form.fields}
    known = PushTemplate.objects.filter(queue_id=queue_id)
    again = known.filter(name=name).exists()
    if not again and known.count() >= MOST:
        return _("This queue has %(n)s templates already: delete one first.") % {"n": write.number(MOST)}
    try:
        with transaction.atomic():
            PushTemplate.objects.update_or_create(
                queue_id=queue_id, name=name, defaults={"fields": fields, "by": by[:150], "at": datetime.now(UTC)}
            )
            told = {"template": name}
            note(by, "keep_template", before=told if again else None, after=told, queue_id=queue_id, queue=queue)
    except DatabaseError as error:
        log.warning("a push template could not be kept: %s: %s", type(error).__name__, error)
        return _("The site cannot write its own tables right now.")
    return ""


def forget(queue_id: int, queue: str, number: str, *, by: str) -> bool:
    """Delete a template of a queue; say whether it was there."""
    found = get(queue_id, number)
    if found is None:
        return False
    with transaction.atomic():
        found.delete()
        note(by, "forget_template", before={"template": found.name}, queue_id=queue_id, queue=queue)
    return True
