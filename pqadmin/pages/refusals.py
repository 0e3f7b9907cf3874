"""Refused acts in words: what happened, whether anything changed, what to do."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from pqadmin.display.errors import said
from pqadmin.pages import visibility
from pqadmin.pages.form_idempotency import FormChanged, FormRefused
from queues import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refused act for a notice. `status` is the HTTP status of the page that shows it."""

    title: str
    text: str
    advice: str
    status: int = 409
    #: The field of the form that is at fault; empty when it is none.
    field: str = ""


class NotPossible(errors.QueueError):
    """An action that a rule of the site forbids; the message says why."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        #: The field of the form that is at fault; empty when it is none.
        self.field = field


class InvalidField(NotPossible):
    """A field with an invalid value, whatever is there already."""


class NoTarget(errors.QueueError):
    """No queue has the name that items shall move to."""


class Uncovers(errors.QueueError):
    """Values would be moved to where fewer rules hide them, without the tick that allows it."""


_Kinds = type[Exception] | tuple[type[Exception], ...]
_Text = str | Promise
_NOTHING: _Text = _("Nothing was changed.")
#: Errors with their title, advice, HTTP status and field; the first that fits counts.
_NOTICES: tuple[tuple[_Kinds, _Text, _Text, int, str], ...] = (
    (errors.HeadChanged, _("Another item came to this end"), _("Look at the item below and confirm again."), 409, ""),
    (errors.DepthChanged, _("The depth has changed"), _("Look at the number below and confirm again."), 409, ""),
    (errors.ConfirmationMismatch, _("The name does not match"), _("Type it exactly as shown."), 422, "confirm"),
    (errors.QueuePaused, _("The queue is paused"), _("Nothing was taken. Resume the queue first, or wait."), 409, ""),
    (errors.SettingsChanged, _("The settings have changed meanwhile"), _NOTHING, 409, ""),
    (errors.BadSetting, _("This cannot be a setting"), _NOTHING, 422, ""),
    (errors.JobNotFound, _("No such job"), _NOTHING, 404, ""),
    (errors.JobEnded, _("This job cannot do that"), _NOTHING, 409, ""),
    (errors.QueueFull, _("The queue is full"), _NOTHING, 409, ""),
    (errors.ItemGoneOn, _("Some items have gone on since"), _NOTHING, 409, ""),
    (errors.StillMerging, _("An earlier restore is still being worked in"), _("Try again in a minute."), 409, ""),
    (errors.QueueClosed, _("The queue is closed for pushes"), _NOTHING, 409, ""),
    (
        errors.QueueExists,
        _("The name is taken"),
        _("Choose another name, or rename the other queue first."),
        422,
        "name",
    ),
    (errors.BadName, _("This cannot be a name"), _NOTHING, 422, "name"),
    (errors.BadGlob, _("This cannot be a pattern"), _NOTHING, 422, "pattern"),
    (errors.PatternNotFound, _("There are no targets for this pattern"), _NOTHING, 409, ""),
    (errors.BadPrefix, _("This cannot be a prefix"), _NOTHING, 422, "prefix_text"),
    (errors.PrefixTaken, _("The prefix is taken"), _NOTHING, 422, "prefix_text"),
    (errors.BadPriority, _("The priority does not fit"), _NOTHING, 422, "priority"),
    (errors.BadTime, _("The time does not fit"), _NOTHING, 422, ""),
    ((errors.BadValue, errors.ValueTooLarge, errors.TooLarge), _("The value does not fit"), _NOTHING, 422, "value"),
    (
        errors.Unreadable,
        _("This cannot be read"),
        _("Nothing was changed, and nothing of it was thrown away."),
        409,
        "",
    ),
    (errors.AlreadyRestored, _("Already put back"), _("It is where it was; nothing was done a second time."), 409, ""),
    (errors.TrashNotFound, _("No longer in the trash"), _NOTHING, 404, ""),
    (
        errors.QueueNotFound,
        _("The queue is not there"),
        _("It may have been renamed or deleted; see the audit."),
        404,
        "",
    ),
    (errors.NotForAttached, _("Not for an attached queue"), _NOTHING, 409, ""),
    (errors.NotAttached, _("Only for attached queues"), _NOTHING, 404, ""),
    (errors.NotTheRecipe, _("Other programs’ keys are in the way"), _NOTHING, 409, ""),
    (errors.ItemChanged, _("The item has changed"), "", 409, ""),
    (errors.WrongState, _("The state has changed"), "", 409, ""),
    (errors.ItemLeased, _("A worker holds it"), "", 409, ""),
    (errors.ValueChanged, _("The value has changed meanwhile"), "", 409, ""),
    (errors.SameQueue, _("That is the same queue"), _NOTHING, 422, "to"),
    (FormRefused, _("This form has expired"), _("Look at it again and send it from here."), 409, ""),
    (
        FormChanged,
        _("This form was sent before with other content"),
        _("Send it again from here if you want this done too."),
        409,
        "",
    ),
    (NotPossible, _("This cannot be done"), "", 409, ""),
    (Uncovers, _("Values become visible there"), _NOTHING, 422, "uncover"),
    (visibility.NotYours, _("You may not act on a queue of this name"), _NOTHING, 422, "name"),
    (visibility.NotThere, _("You may not act there"), _NOTHING, 422, "to"),
    (NoTarget, _("No queue has this name"), _NOTHING, 422, "to"),
    (errors.ItemNotFound, _("The item is not there any more"), "", 409, ""),
    (errors.PlaceTaken, _("Its old place is taken"), _("Other programs wrote another item there."), 409, ""),
    (errors.WrongKind, _("Not for this kind of queue"), _NOTHING, 409, ""),
    (
        errors.OutcomeUnknown,
        _("The store gave no answer"),
        _("Send this form again: it is not done a second time."),
        503,
        "",
    ),
    (errors.StoreError, _("The store could not do this"), _("Nothing was changed. Try again in a moment."), 503, ""),
    (Exception, _("This was refused"), _NOTHING, 409, ""),
)


def explain(error: Exception) -> Refusal:
    """Return an error of the queue core as a notice."""
    _kinds, title, advice, status, field = next(row for row in _NOTICES if isinstance(error, row[0]))
    match error:
        case errors.HeadChanged(item=None):
            title, advice = _("Nothing is ready any more"), _("The item was taken meanwhile.")
        case errors.BadSetting(name=name):
            field = name
        case NotPossible(field=name):
            status, field = 422 if name else 409, name
    return Refusal(title=str(title), text=said(error), advice=str(advice), status=status, field=field)
