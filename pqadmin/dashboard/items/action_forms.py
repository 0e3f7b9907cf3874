"""Forms of the actions on items: they turn what was typed into arguments; the rules are the core's."""

import base64
from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from pqadmin.display.errors import said
from pqadmin.display.moments import UNITS
from pqadmin.pages.fields import (
    INPUT_MODES,
    MAX_PRIORITY,
    Suggested,
    TypedField,
    ZoneField,
    choice,
    choices_field,
    encoding_field,
    keep_choices,
    moment_field,
    noted,
    payload,
    read_moment,
    reason_field,
    tick_field,
    unit_field,
    value_field,
)
from queues import Priority, Queue
from queues.admin import PriorityType, check_name, parse_priority
from queues.errors import BadPriority

#: Seconds for which an operator holds an item.
HOLDS = (60, 300, 900, 3600, 14400)
_MAX_DAYS = 3_000_000


def holds() -> list[tuple[int, str]]:
    """Return for how long an operator can hold an item, in seconds and in words."""
    found = []
    for seconds in HOLDS:
        n = seconds // 60 if seconds < 3600 else seconds // 3600
        minutes, hours = ngettext("%(n)s minute", "%(n)s minutes", n), ngettext("%(n)s hour", "%(n)s hours", n)
        found.append((seconds, (minutes if seconds < 3600 else hours) % {"n": n}))
    return found


class ActForm(forms.Form):
    """An action that may be explained."""

    reason = reason_field()

    @property
    def arguments(self) -> dict[str, Any]:
        """What the action is called with, once the form is valid."""
        return {"reason": self.cleaned_data.get("reason", "")}


class MoveForm(ActForm):
    """To which queue, and with which priority there; empty: with the one that each item has."""

    to = TypedField(
        _("To the queue"),
        widget=Suggested,
        missing=_("Say which queue the items move to."),
        check=check_name,
        autofocus=True,
    )
    priority = TypedField(noted(_("Priority there"), _("if another")), max_length=MAX_PRIORITY, strip=False)
    #: Values that are hidden here may be seen there.
    uncover = tick_field(_("Hidden values become visible there"), _("to all users of that queue; the audit records it"))

    def __init__(self, *args: Any, fifo: bool, targets: Iterable[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast("Suggested", self.fields["to"].widget).suggestions = targets
        self.fields["priority"].help_text = (
            _("Needed unless the other queue is fifo too.") if fifo else _("Empty: each keeps its own.")
        )

    def priority_for(self, target: Queue) -> Priority | None:
        """Read the priority by the type of the target; None when none was typed. Raises `BadPriority`."""
        text = str(self.cleaned_data.get("priority") or "")
        if text and target.kind == "fifo":
            raise BadPriority(gettext("That is a fifo queue: its items have no priority. Leave it empty."))
        return parse_priority(text, target.priority_type) if text else None


class ReprioritizeForm(ActForm):
    """Another priority, a shift, or the front or the back."""

    how = choices_field(
        _("How"),
        [
            ("set", choice(_("Set the priority"), "")),
            ("shift", choice(_("Shift it by a number"), "")),
            ("front", choice(_("To the front"), _("leaves first by pop min"))),
            ("back", choice(_("To the back"), _("leaves last by pop min"))),
        ],
        "four",
        required=False,
    )
    priority = TypedField(_("Priority"), max_length=MAX_PRIORITY, strip=False, autofocus=True)
    shift = TypedField(_("Shift by"), max_length=400, help_text=_("−5 lets it leave earlier by pop min."))

    def __init__(self, *args: Any, fifo: bool, priority_type: PriorityType, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fifo = fifo
        self._type = priority_type
        #: One of priority, shift and place, once the form is valid.
        self.change: dict[str, Any] = {}
        if fifo:
            how: Any = self.fields["how"]
            how.choices = [
                ("front", choice(_("To the front"), _("leaves first"))),
                ("back", choice(_("To the back"), _("leaves last"))),
            ]
            how.initial = "front"
        elif priority_type == "str":
            keep_choices(self, "how", ("set", "front", "back"))
        self.fields["priority"].label = noted(_("Priority"), priority_type)
        self.fields["priority"].widget.attrs["inputmode"] = INPUT_MODES.get(priority_type, "text")

    @property
    def arguments(self) -> dict[str, Any]:
        """What the action is called with."""
        return super().arguments | self.change

    def clean(self) -> dict[str, Any]:
        """Read what the chosen way needs."""
        cleaned = super().clean() or self.cleaned_data
        how = cleaned.get("how") or ("front" if self._fifo else "set")
        cleaned["how"] = how
        field = {"set": "priority", "shift": "shift"}.get(how, "")
        if not field:
            self.change = {"place": how}
        elif field not in self.errors:
            # A shift of whole numbers is one; the core says so where a type has none.
            kind: PriorityType = self._type if how == "set" or self._type == "float" else "int"
            try:
                self.change = {field: parse_priority(str(cleaned.get(field) or ""), kind)}
            except BadPriority as error:
                self.add_error(field, said(error))
        return cleaned


class RescheduleForm(ActForm):
    """Another due time: so long from now, or a moment in a time zone."""

    when = forms.ChoiceField(
        label=_("Due"),
        required=False,
        choices=[("in", _("After a delay")), ("at", _("At a moment"))],
        widget=forms.RadioSelect,
        initial="in",
    )
    amount = TypedField(_("How long"), max_length=40, inputmode="decimal", autofocus=True, css="mono-input amount")
    unit = unit_field([("s", _("seconds")), ("min", _("minutes")), ("h", _("hours")), ("d", _("days"))])
    at = moment_field()
    zone = ZoneField()
    _due: dict[str, Any] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        """What the action is called with: a delay or a moment."""
        return super().arguments | self._due

    def clean(self) -> dict[str, Any]:
        """Read the delay or the moment."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("when") == "at":
            if not {"at", "zone"} & set(self.errors):
                due = read_moment(self, "at", cleaned)
                self._due = {} if due is None else {"due": due}
        elif "amount" not in self.errors:
            self._read_delay(str(cleaned.get("amount") or "").strip(), str(cleaned.get("unit") or "min"))
        return cleaned

    def _read_delay(self, text: str, unit: str) -> None:
        try:
            amount = float(text)
        except ValueError:
            self.add_error("amount", _("Say in how many seconds, minutes, hours or days."))
            return
        if not 0 <= amount * UNITS[unit].total_seconds() <= _MAX_DAYS * 86_400:
            self.add_error("amount", _("An item is due now or later, and before the year 10000."))
            return
        self._due = {"delay": amount * UNITS[unit]}


class LeaseForm(ActForm):
    """How long an operator holds an item, and from which end."""

    seconds = forms.TypedChoiceField(
        label=_("For how long"), coerce=int, choices=holds, initial=300, widget=forms.Select({"autofocus": True})
    )
    end = forms.ChoiceField(required=False, choices=[("min", "min"), ("max", "max")], widget=forms.HiddenInput)

    @property
    def arguments(self) -> dict[str, Any]:
        """What the action is called with."""
        data = self.cleaned_data
        return super().arguments | {"seconds": data["seconds"], "end": data.get("end") or "min"}


class EditForm(ActForm):
    """Another value for an item; `payload` are its bytes, once the form is valid. `digest` seals what was seen."""

    value = value_field(rows=14, autofocus=True)
    encoding = encoding_field()
    digest = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.payload = b""
        if self["encoding"].value() == "base64":
            self.fields["value"].help_text = _("These bytes are no plain text, so they are shown as base64.")

    def clean(self) -> dict[str, Any]:
        """Make the bytes of the value."""
        cleaned = super().clean() or self.cleaned_data
        self.payload = payload(self, cleaned)
        return cleaned


def typed_value(value: bytes) -> tuple[str, str]:
    """Return a value as an editor shows it, and its encoding: text only where the very bytes come back from a form."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if any((char < " " and char not in "\n\t") or char == "\x7f" for char in text):
        return base64.encodebytes(value).decode("ascii"), "base64"
    return text, "text"


class PopForm(ActForm):
    """The end to pop from, and the item there that was confirmed."""

    reason = reason_field(autofocus=True)
    #: An item's id; that of an attached queue's item is its whole key.
    expect = forms.CharField(required=False, max_length=25_000)
    end = forms.TypedChoiceField(required=False, choices=[("min", "min"), ("max", "max")], empty_value="min")
