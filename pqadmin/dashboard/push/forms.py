"""Forms of pushing: one item, or many at once; at once, after a delay, or at a moment in any time zone."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from pqadmin.display.errors import said
from pqadmin.display.moments import MAX_ZONE, UNITS, BadMoment, BadZone, parse_moment
from queues import Priority
from queues.admin import PriorityType, parse_priority
from queues.errors import BadPriority

#: As much text as the largest value can take in any encoding; the core judges the bytes.
MAX_TYPED = 400_000
#: As much text as a form may carry.
MAX_PASTED = 2_000_000
_NUMBER = re.compile(r"\d{1,9}(?:[.,]\d{1,3})?")


class WhenForm(forms.Form):
    """When items become ready. `delay` or `due` is set once the form is valid, neither for at once."""

    when = forms.ChoiceField(required=False, choices=[("", ""), ("delay", "delay"), ("due", "due")])
    delay = forms.CharField(required=False, max_length=40)
    unit = forms.ChoiceField(required=False, choices=[(unit, unit) for unit in UNITS])
    due = forms.CharField(required=False, max_length=60)
    zone = forms.CharField(required=False, max_length=MAX_ZONE)

    def __init__(self, *args: Any, attached: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.span: timedelta | None = None
        self.moment: datetime | None = None
        if attached:  # others would take delayed items before
            for name in ("when", "delay", "unit", "due", "zone"):
                del self.fields[name]

    def clean(self) -> dict[str, Any]:
        """Read the delay or the moment that was chosen; what was not chosen is not looked at."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("when") == "delay":
            self._read_delay(str(cleaned.get("delay") or ""), str(cleaned.get("unit") or "s"))
        elif cleaned.get("when") == "due":
            self._read_due(str(cleaned.get("due") or ""), str(cleaned.get("zone") or ""))
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

    def _read_due(self, text: str, zone: str) -> None:
        try:
            self.moment = parse_moment(text, zone)
        except BadMoment as error:
            self.add_error("due", str(error))
        except BadZone as error:
            self.add_error("zone", str(error))


class PushForm(WhenForm):
    """One item. `payload` and `parsed_priority` are what to push, once the form is valid."""

    value = forms.CharField(required=False, strip=False, max_length=MAX_TYPED)
    encoding = forms.ChoiceField(required=False, choices=[("text", "text"), ("base64", "base64")])
    priority = forms.CharField(required=False, strip=False, max_length=2_000)

    def __init__(self, *args: Any, fifo: bool, priority_type: PriorityType, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.payload = b""
        self.parsed_priority: Priority | None = None
        self._type = priority_type
        if fifo:
            del self.fields["priority"]

    def clean_value(self) -> str:
        """Take the value as typed; a browser's line ends become plain ones."""
        return str(self.cleaned_data["value"]).replace("\r\n", "\n")

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
        text = cleaned.get("value")
        if text is None:
            return cleaned
        if cleaned.get("encoding") == "base64":
            try:
                self.payload = base64.b64decode("".join(text.split()), validate=True)
            except (binascii.Error, ValueError):
                self.add_error("value", _("This is not base64."))
        else:
            self.payload = text.encode("utf-8", "surrogatepass")
        return cleaned


class ManyForm(WhenForm):
    """Several items, pasted or as a file."""

    items = forms.CharField(required=False, strip=False, max_length=MAX_PASTED)
    format = forms.ChoiceField(required=False, choices=[("", ""), ("ndjson", "NDJSON"), ("csv", "CSV")])
    file = forms.FileField(required=False, allow_empty_file=True, max_length=1_000)
    reason = forms.CharField(required=False, max_length=500)
