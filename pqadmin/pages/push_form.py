"""The form that pushes one item: at once, after a delay, or at a moment in any time zone."""

import re
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.display.moments import UNITS
from pqadmin.pages.fields import (
    INPUT_MODES,
    MAX_PRIORITY,
    TypedField,
    ZoneField,
    encoding_field,
    moment_field,
    noted,
    payload,
    read_moment,
    unit_field,
    value_field,
)
from queues import Priority, QueueStatus
from queues.admin import parse_priority
from queues.errors import BadPriority

_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


class WhenForm(forms.Form):
    """When items become ready. `delay` or `due` is set once the form is valid, neither for at once."""

    when = forms.ChoiceField(
        label=_("When"),
        required=False,
        choices=[("", _("At once")), ("delay", _("After a delay")), ("due", _("At a moment"))],
        widget=forms.RadioSelect,
        initial="",
    )
    delay = TypedField(_("Delay"), max_length=40, inputmode="decimal", placeholder="15", css="mono-input short")
    unit = unit_field()
    due = moment_field()
    zone = ZoneField()
    span: timedelta | None = None
    moment: datetime | None = None

    def __init__(self, *args: Any, status: QueueStatus, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if status.attached:  # other programs would take delayed items before
            for name in ("when", "delay", "unit", "due", "zone"):
                del self.fields[name]
            return
        # What is typed at a choice chooses it.
        for name, choice in (("delay", 1), ("unit", 1), ("due", 2), ("zone", 2)):
            self.fields[name].widget.attrs["data-picks"] = f"{self['when'].auto_id}_{choice}"

    def clean(self) -> dict[str, Any]:
        """Read the delay or the moment that was chosen; what was not chosen is not looked at."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("when") == "delay":
            self._read_delay(str(cleaned.get("delay") or ""), str(cleaned.get("unit") or "s"))
        elif cleaned.get("when") == "due":
            self.moment = read_moment(self, "due", cleaned)
        return cleaned

    def _read_delay(self, text: str, unit: str) -> None:
        text = text.strip()
        if _NUMBER.fullmatch(text) is None:
            self.add_error("delay", _("Give a number, such as 15 or 1.5."))
            return
        try:
            self.span = float(text.replace(",", ".")) * UNITS[unit]
        except OverflowError:
            self.add_error("delay", _("This is too far away."))


class PushForm(WhenForm):
    """One item. `payload` and `parsed_priority` are what to push, once the form is valid."""

    value = value_field()
    encoding = encoding_field()
    priority = TypedField(
        _("Priority"),
        max_length=MAX_PRIORITY,
        strip=False,
        help_text=_("The smallest leaves first by pop min, the largest by pop max."),
    )

    def __init__(self, *args: Any, status: QueueStatus, rows: int = 12, **kwargs: Any) -> None:
        super().__init__(*args, status=status, **kwargs)
        self.payload = b""
        self.fields["value"].widget.attrs["rows"] = rows
        self.parsed_priority: Priority | None = None
        self._type = status.priority_type
        self.fields["priority"].label = noted(_("Priority"), self._type)
        self.fields["priority"].widget.attrs["inputmode"] = INPUT_MODES.get(self._type, "text")
        if status.max_value:
            words = _("Any bytes, at most %(n)s in this queue; empty is a value too.")
            self.fields["value"].help_text = words % {"n": write.number(status.max_value)}
        if status.kind == "fifo":
            del self.fields["priority"]

    def clean_priority(self) -> str:
        """Read the priority by the queue's type."""
        text = str(self.cleaned_data["priority"])
        try:
            self.parsed_priority = parse_priority(text, self._type)
        except BadPriority as error:
            raise forms.ValidationError(said(error)) from None
        return text

    def clean(self) -> dict[str, Any]:
        """Make the bytes of the value."""
        cleaned = super().clean()
        self.payload = payload(self, cleaned)
        return cleaned
