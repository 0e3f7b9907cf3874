"""Forms of the acts. They turn what was typed into values; the rules about values are the queue core's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.display.errors import said
from pqadmin.display.moments import MAX_ZONE, BadMoment, BadZone, parse_moment
from pqadmin.display.prefixes import BadPrefixText, parse_prefix
from queues import Priority
from queues.admin import CODECS, PriorityType, check_name, parse_priority
from queues.errors import BadName, BadPriority

_MAX_REASON = 500
#: How long an operator may pause a queue from the list of choices.
PAUSES = {"15m": timedelta(minutes=15), "1h": timedelta(hours=1), "4h": timedelta(hours=4), "24h": timedelta(days=1)}


class CreateForm(forms.Form):
    """A new queue."""

    name = forms.CharField(
        strip=True, max_length=20_000, error_messages={"required": gettext_lazy("A queue needs a name.")}
    )
    kind = forms.ChoiceField(choices=[("priority", "priority"), ("fifo", "fifo")])
    priority_type = forms.ChoiceField(required=False, choices=[("int", "int"), ("float", "float"), ("str", "str")])
    codec = forms.ChoiceField(required=False, choices=[(codec, codec) for codec in CODECS])
    edges = forms.CharField(required=False, max_length=4_000)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parsed_edges: list[Priority] | None = None

    def clean_name(self) -> str:
        """Check the name by the core's rule."""
        return _checked_name(self.cleaned_data["name"])

    def clean(self) -> dict[str, Any]:
        """Read the edges of the bands by the priority type."""
        cleaned = super().clean() or self.cleaned_data
        text = str(cleaned.get("edges") or "").strip()
        if text and cleaned.get("kind") == "priority":
            kind: PriorityType = cleaned.get("priority_type") or "int"
            try:
                self.parsed_edges = [parse_priority(part.strip(), kind) for part in text.split(",")]
            except BadPriority as error:
                self.add_error("edges", said(error))
        return cleaned


class AttachForm(forms.Form):
    """A subspace that others write. `parsed_prefix` is where it lies, once the form is valid."""

    name = forms.CharField(
        strip=True, max_length=20_000, error_messages={"required": gettext_lazy("A queue needs a name.")}
    )
    prefix_text = forms.CharField(
        max_length=20_000, error_messages={"required": gettext_lazy("Say under which prefix the items lie.")}
    )
    kind = forms.ChoiceField(choices=[("priority", "priority"), ("fifo", "fifo")])
    priority_type = forms.ChoiceField(required=False, choices=[("int", "int"), ("float", "float"), ("str", "str")])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parsed_prefix: bytes | tuple[Any, ...] = b""

    def clean_name(self) -> str:
        """Check the name by the core's rule."""
        return _checked_name(self.cleaned_data["name"])

    def clean_prefix_text(self) -> str:
        """Read the prefix."""
        text = str(self.cleaned_data["prefix_text"])
        try:
            self.parsed_prefix = parse_prefix(text)
        except BadPrefixText as error:
            raise forms.ValidationError(str(error)) from None
        return text


class PauseForm(forms.Form):
    """Why to pause, and until when. `until` is a moment once the form is valid, None for until resumed."""

    reason = forms.CharField(
        max_length=_MAX_REASON,
        error_messages={"required": gettext_lazy("Say why, for those who find the queue paused.")},
    )
    lasting = forms.ChoiceField(required=False, choices=[("", ""), *((key, key) for key in PAUSES), ("at", "at")])
    at = forms.CharField(required=False, max_length=40)
    zone = forms.CharField(required=False, max_length=MAX_ZONE)

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.until: datetime | None = None
        self._now = now

    def clean(self) -> dict[str, Any]:
        """Work out when the queue resumes."""
        cleaned = super().clean() or self.cleaned_data
        lasting = cleaned.get("lasting") or ""
        if lasting in PAUSES:
            self.until = self._now + PAUSES[lasting]
        elif lasting == "at":
            self._read_moment(str(cleaned.get("at") or ""), str(cleaned.get("zone") or ""))
        return cleaned

    def _read_moment(self, text: str, zone: str) -> None:
        try:
            self.until = parse_moment(text, zone)
        except BadMoment as error:
            self.add_error("at", str(error))
        except BadZone as error:
            self.add_error("zone", str(error))
        else:
            if self.until <= self._now:
                self.add_error("at", _("That moment has passed."))


class RenameForm(forms.Form):
    """A new name."""

    name = forms.CharField(
        strip=True, max_length=20_000, error_messages={"required": gettext_lazy("A queue needs a name.")}
    )

    def clean_name(self) -> str:
        """Check the name by the core's rule."""
        return _checked_name(self.cleaned_data["name"])


class DeleteForm(forms.Form):
    """To delete or to purge: a typed name, the depth that was shown, and why."""

    confirm = forms.CharField(required=False, strip=True, max_length=20_000)
    reason = forms.CharField(required=False, max_length=_MAX_REASON)
    depth = forms.IntegerField(min_value=0, required=True)


def _checked_name(name: str) -> str:
    try:
        return check_name(name)
    except BadName as error:
        raise forms.ValidationError(said(error)) from None
