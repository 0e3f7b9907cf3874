"""Refused acts in words: what happened, whether anything changed, what to do."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from pqadmin.display.errors import said
from pqadmin.pages import visibility
from pqadmin.pages.once import FormRefused
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


class NoTarget(errors.QueueError):
    """No queue has the name that items shall move to."""


class Uncovers(errors.QueueError):
    """Values would be moved to where fewer rules hide them, without the tick that allows it."""


def explain(error: Exception) -> Refusal:
    """Return an error of the queue core as a notice."""
    title, advice, status, field = _about(error)
    return Refusal(title=title, text=said(error), advice=advice, status=status, field=field)


def _about(error: Exception) -> tuple[str, str, int, str]:
    nothing = _("Nothing was changed.")
    match error:
        case errors.HeadChanged(item=None):
            return _("Nothing is ready any more"), _("The item was taken meanwhile."), 409, ""
        case errors.HeadChanged():
            return _("Another item came to this end"), _("Look at the item below and confirm again."), 409, ""
        case errors.DepthChanged():
            return _("The depth has changed"), _("Look at the number below and confirm again."), 409, ""
        case errors.ConfirmationMismatch():
            return _("The name does not match"), _("Type it exactly as shown."), 422, "confirm"
        case errors.QueuePaused():
            return _("The queue is paused"), _("Nothing was taken. Resume the queue first, or wait."), 409, ""
        case errors.SettingsChanged():
            return _("The settings have changed meanwhile"), nothing, 409, ""
        case errors.BadSetting(name=field):
            return _("This cannot be a setting"), nothing, 422, field
        case errors.JobNotFound():
            return _("No such job"), nothing, 404, ""
        case errors.JobEnded():
            return _("This job cannot do that"), nothing, 409, ""
        case errors.QueueFull():
            return _("The queue is full"), nothing, 409, ""
        case errors.ItemGoneOn():
            return _("Some items have gone on since"), nothing, 409, ""
        case errors.StillMerging():
            return _("An earlier restore is still being worked in"), _("Try again in a minute."), 409, ""
        case errors.QueueClosed():
            return _("The queue is closed for pushes"), nothing, 409, ""
        case errors.QueueExists():
            return _("The name is taken"), _("Choose another name, or rename the other queue first."), 422, "name"
        case errors.BadName():
            return _("This cannot be a name"), nothing, 422, "name"
        case errors.BadPrefix():
            return _("This cannot be a prefix"), nothing, 422, "prefix_text"
        case errors.PrefixTaken():
            return _("The prefix is taken"), nothing, 422, "prefix_text"
        case errors.BadPriority():
            return _("The priority does not fit"), nothing, 422, "priority"
        case errors.BadTime():
            return _("The time does not fit"), nothing, 422, ""
        case errors.BadValue() | errors.ValueTooLarge() | errors.TooLarge():
            return _("The value does not fit"), nothing, 422, "value"
        case errors.Unreadable():
            return _("This cannot be read"), _("Nothing was changed, and nothing of it was thrown away."), 409, ""
        case errors.AlreadyRestored():
            return _("Already put back"), _("It is where it was; nothing was done a second time."), 409, ""
        case errors.TrashNotFound():
            return _("No longer in the trash"), nothing, 404, ""
        case errors.QueueNotFound():
            return _("The queue is not there"), _("It may have been renamed or deleted; see the audit."), 404, ""
        case errors.NotForAttached():
            return _("Not for an attached queue"), nothing, 409, ""
        case errors.NotAttached():
            return _("Only for attached queues"), nothing, 404, ""
        case errors.NotTheRecipe():
            return _("Other programs’ keys are in the way"), nothing, 409, ""
        case errors.ItemChanged():
            return _("The item has changed"), "", 409, ""
        case errors.WrongState():
            return _("The state has changed"), "", 409, ""
        case errors.ItemLeased():
            return _("A worker holds it"), "", 409, ""
        case errors.ValueChanged():
            return _("The value has changed meanwhile"), "", 409, ""
        case errors.SameQueue():
            return _("That is the same queue"), nothing, 422, "to"
        case errors.BadTime():
            return _("This cannot be a time"), nothing, 422, "when"
        case FormRefused():
            return _("This form has expired"), _("Look at it again and send it from here."), 409, ""
        case NotPossible(field=field):
            return _("This cannot be done"), "", 422 if field else 409, field
        case Uncovers():
            return _("Values become visible there"), nothing, 422, "uncover"
        case visibility.NotYours():
            return _("You may not act on a queue of this name"), nothing, 422, "name"
        case visibility.NotThere():
            return _("You may not act there"), nothing, 422, "to"
        case NoTarget():
            return _("No queue has this name"), nothing, 422, "to"
        case errors.ItemNotFound():
            return _("The item is not there any more"), "", 409, ""
        case errors.PlaceTaken():
            return _("Its old place is taken"), _("Other programs wrote another item there."), 409, ""
        case errors.WrongKind():
            return _("Not for this kind of queue"), nothing, 409, ""
        case errors.OutcomeUnknown():
            return _("The store gave no answer"), _("Send this form again: it is not done a second time."), 503, ""
        case errors.StoreError():
            return _("The store could not do this"), _("Nothing was changed. Try again in a moment."), 503, ""
    return _("This was refused"), nothing, 409, ""
