"""Forms of the acts on items: they turn what was typed into the arguments of the act; its rules are the core's."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Any, cast

from django import forms
from django.utils.translation import gettext as _

from pqadmin.display.errors import said
from pqadmin.display.moments import MAX_ZONE, UNITS, BadMoment, BadZone, parse_moment
from queues import Priority
from queues.admin import ItemPlace, PriorityType, check_name, parse_priority
from queues.errors import BadName, BadPriority

_MAX_REASON = 500
#: As much text as the largest value can take in any encoding; the core judges the bytes.
_MAX_TYPED = 400_000
#: Seconds for which an operator holds an item.
HOLDS = (60, 300, 900, 3600, 14400)
_MAX_DAYS = 3_000_000


class ActForm(forms.Form):
    """An act that may be explained."""

    reason = forms.CharField(required=False, max_length=_MAX_REASON)

    @property
    def arguments(self) -> dict[str, Any]:
        """What the act is called with, once the form is valid."""
        return {"reason": self.cleaned_data.get("reason", "")}


class MoveForm(ActForm):
    """To which queue, and with which priority there; empty: with the one that each item has."""

    to = forms.CharField(required=False, strip=True, max_length=20_000)
    priority = forms.CharField(required=False, strip=False, max_length=2_000)
    #: Values that are hidden here may be seen there.
    uncover = forms.BooleanField(required=False)

    def clean_to(self) -> str:
        """Check the name by the core's rule."""
        text = str(self.cleaned_data["to"])
        if not text:
            raise forms.ValidationError(_("Say which queue the items move to."))
        try:
            return check_name(text, new=False)
        except BadName as error:
            raise forms.ValidationError(said(error)) from None

    def priority_for(self, priority_type: PriorityType) -> Priority | None:
        """Read the priority by the type of the target; None when none was typed. Raises `BadPriority`."""
        text = str(self.cleaned_data.get("priority") or "")
        return parse_priority(text, priority_type) if text else None


class ReprioritizeForm(ActForm):
    """Another priority, a shift, or the front or the back."""

    how = forms.ChoiceField(required=False, choices=[(how, how) for how in ("set", "shift", "front", "back")])
    priority = forms.CharField(required=False, strip=False, max_length=2_000)
    shift = forms.CharField(required=False, max_length=400)

    def __init__(self, *args: Any, fifo: bool, priority_type: PriorityType, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fifo = fifo
        self._type = priority_type
        self._change: dict[str, Any] = {}

    @property
    def change(self) -> dict[str, Any]:
        """One of priority, shift and place, once the form is valid."""
        return self._change

    @property
    def arguments(self) -> dict[str, Any]:
        """What the act is called with."""
        return super().arguments | self._change

    def clean(self) -> dict[str, Any]:
        """Read what the chosen way needs."""
        cleaned = super().clean() or self.cleaned_data
        how = cleaned.get("how") or ("front" if self._fifo else "set")
        cleaned["how"] = how
        if how in ("front", "back"):
            self._change = {"place": cast("ItemPlace", how)}
            return cleaned
        field = "priority" if how == "set" else "shift"
        if field in self.errors:
            return cleaned
        text = str(cleaned.get(field) or "")
        # A shift of whole numbers is one; the core says so where a type has none.
        kind: PriorityType = self._type if how == "set" else "float" if self._type == "float" else "int"
        try:
            self._change = {field: parse_priority(text, kind)}
        except BadPriority as error:
            self.add_error(field, said(error))
        return cleaned


class RescheduleForm(ActForm):
    """Another due time: so long from now, or a moment in a time zone."""

    when = forms.ChoiceField(required=False, choices=[("in", "in"), ("at", "at")])
    amount = forms.CharField(required=False, max_length=40)
    unit = forms.ChoiceField(required=False, choices=[(unit, unit) for unit in UNITS])
    at = forms.CharField(required=False, max_length=40)
    zone = forms.CharField(required=False, max_length=MAX_ZONE)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._due: dict[str, Any] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        """What the act is called with."""
        return super().arguments | self._due

    @property
    def due(self) -> datetime | None:
        """The moment that was given; None for a delay."""
        return self._due.get("due")

    def clean(self) -> dict[str, Any]:
        """Read the delay or the moment."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("when") == "at":
            if not {"at", "zone"} & set(self.errors):
                self._read_moment(str(cleaned.get("at") or ""), str(cleaned.get("zone") or ""))
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

    def _read_moment(self, text: str, zone: str) -> None:
        try:
            self._due = {"due": parse_moment(text, zone)}
        except BadZone as error:
            self.add_error("zone", str(error))
        except BadMoment as error:
            self.add_error("at", str(error))


class LeaseForm(ActForm):
    """How long an operator holds an item, and from which end."""

    seconds = forms.TypedChoiceField(coerce=int, choices=[(seconds, seconds) for seconds in HOLDS])
    end = forms.ChoiceField(required=False, choices=[("min", "min"), ("max", "max")])

    @property
    def arguments(self) -> dict[str, Any]:
        """What the act is called with."""
        return super().arguments | {
            "seconds": self.cleaned_data["seconds"],
            "end": self.cleaned_data.get("end") or "min",
        }


class EditForm(ActForm):
    """Another value for an item; `payload` are its bytes, once the form is valid. `digest` seals what was seen."""

    value = forms.CharField(required=False, strip=False, max_length=_MAX_TYPED)
    encoding = forms.ChoiceField(required=False, choices=[("text", "text"), ("base64", "base64")])
    digest = forms.CharField(required=False, max_length=64)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.payload = b""

    def clean(self) -> dict[str, Any]:
        """Make the bytes of the value; a browser's line ends become plain ones."""
        cleaned = super().clean() or self.cleaned_data
        text = cleaned.get("value")
        if text is None:
            return cleaned
        if cleaned.get("encoding") == "base64":
            try:
                self.payload = base64.b64decode("".join(text.split()), validate=True)
            except (binascii.Error, ValueError):
                self.add_error("value", _("This is not base64."))
        else:
            self.payload = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
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


class ReasonForm(forms.Form):
    """An act that may be explained; `expect` is what was confirmed."""

    reason = forms.CharField(required=False, max_length=_MAX_REASON)
    #: An item's id; that of an attached queue's item is its whole key.
    expect = forms.CharField(required=False, max_length=25_000)
