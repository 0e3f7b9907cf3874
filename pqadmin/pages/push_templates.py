"""Push templates: filled-in push forms with a name, shared by all users of a queue."""

from collections.abc import Sequence
from datetime import UTC, datetime

from django import forms
from django.core.validators import ProhibitNullCharactersValidator
from django.db import models, transaction
from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.pages.refusals import InvalidField, NotPossible
from pqadmin.site_audit import Author, note

#: Templates of one queue.
MOST = 50
MAX_NAME = 80
_FIELDS = ("value", "encoding", "priority", "when", "delay", "unit", "due", "zone")


class PushTemplate(models.Model):
    """A filled-in push form of a queue, kept under a name for all its users."""

    #: The queue's number: it stays through renames, and through deleting and restoring.
    queue_id = models.BigIntegerField()
    name = models.CharField(max_length=80)
    #: The fields of the form as they were typed.
    fields = models.JSONField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        app_label = "dashboard"
        constraints = [models.UniqueConstraint(fields=["queue_id", "name"], name="one_template_of_a_name")]

    def __str__(self) -> str:
        return self.name


def of(queue_id: int) -> Sequence[PushTemplate]:
    """Return the templates of a queue by name, without their fields."""
    return list(PushTemplate.objects.filter(queue_id=queue_id).defer("fields").order_by("name")[:MOST])


def get(queue_id: int, number: str) -> PushTemplate | None:
    """Return a template of a queue; None when it is not there."""
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return None
    return PushTemplate.objects.filter(queue_id=queue_id, pk=int(number)).first()


def keep(queue_id: int, queue: str, name: str, form: forms.Form, *, by: Author) -> PushTemplate:
    """Keep what is typed in a form under a name, in place of what was kept under it; raise `NotPossible`."""
    name = " ".join(name.split())
    if not name:
        raise InvalidField(_("A template needs a name."), "name")
    if len(name) > MAX_NAME or not name.isprintable():
        words = _("A template's name has at most %(n)s characters, all of which can be seen.")
        raise InvalidField(words % {"n": write.number(MAX_NAME)}, "name")
    if {"too_long", "max_length"} & {error.code for errors in form.errors.as_data().values() for error in errors}:
        raise InvalidField(_("This is more than a form can hold."))
    fields = {field: str(form[field].value() or "") for field in _FIELDS if field in form.fields}
    if any("\0" in text for text in fields.values()):  # not every database can keep it
        raise InvalidField(str(ProhibitNullCharactersValidator.message))
    known = PushTemplate.objects.filter(queue_id=queue_id)
    again = known.filter(name=name).exists()
    if not again and known.count() >= MOST:
        words = _("This queue has %(n)s templates already: delete one first.")
        raise NotPossible(words % {"n": write.number(MOST)})
    with transaction.atomic():
        kept, _new = PushTemplate.objects.update_or_create(
            queue_id=queue_id, name=name, defaults={"fields": fields, "by": by.name[:150], "at": datetime.now(UTC)}
        )
        told = {"template": name}
        before = told if again else None
        note(by, "keep_template", before=before, after=told, queue_id=queue_id, queue=queue, result=kept)
    return kept


def forget(queue_id: int, queue: str, number: str, *, by: Author) -> PushTemplate:
    """Delete a template of a queue; raise `NotPossible` when it is not there."""
    found = get(queue_id, number)
    if found is None:
        raise NotPossible(_("This template is not there any more."))
    with transaction.atomic():
        key = found.pk
        found.delete()
        found.pk = key
        note(by, "forget_template", before={"template": found.name}, queue_id=queue_id, queue=queue, result=found)
    return found
