"""Forms of the acts. They turn what was typed into values; the rules about values are the queue core's."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from pqadmin.display.errors import said
from pqadmin.display.prefixes import BadPrefixText, parse_prefix
from pqadmin.pages.fields import (
    MAX_REASON,
    NameField,
    TypedField,
    ZoneField,
    choice,
    choices_field,
    moment_field,
    noted,
    priority_type_field,
    read_moment,
    reason_field,
    select_field,
)
from pqadmin.store import store_now
from queues import Priority
from queues.admin import PriorityType, parse_priority
from queues.errors import BadPriority, display_name

#: How long an operator may pause a queue from the list of choices.
PAUSES = {"15m": timedelta(minutes=15), "1h": timedelta(hours=1), "4h": timedelta(hours=4), "24h": timedelta(days=1)}


def codec_field() -> forms.ChoiceField:
    """Return the field of what values are."""
    return choices_field(
        noted(_("Values are"), _("fixed once it exists")),
        [
            ("bytes", choice(_("bytes"), _("of any kind, shown as what they seem to be"))),
            ("json", choice("JSON", _("objects and lists, readable everywhere"))),
            ("text", choice(_("text"), _("in UTF-8"))),
            ("msgpack", choice("msgpack", _("as JSON, smaller, bytes inside"))),
        ],
        required=False,
    )


class CreateForm(forms.Form):
    """A new queue."""

    name = NameField(
        _("Name"),
        help_text=_(
            "1 to 200 letters and digits of any script and . _ : - ; a colon makes groups, as in orders:eu:new."
        ),
    )
    kind = choices_field(
        _("Kind"),
        [
            ("priority", choice(_("Priority"), _("pop min and pop max, by priority, then by push order"))),
            ("fifo", choice(_("FIFO"), _("enqueue and dequeue, first in, first out"))),
        ],
    )
    priority_type = priority_type_field(noted(_("Priorities are"), _("for a priority queue; fixed once it exists")))
    codec = codec_field()
    edges = TypedField(
        noted(_("Edges"), _("separated by commas, at most 15, increasing")),
        max_length=4_000,
        help_text=_("Left empty, the bands suit small numbers and grow coarser above 10."),
        placeholder="1, 5, 10, 100",
    )
    parsed_edges: list[Priority] | None = None

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
    """A subspace that other programs write. `parsed_prefix` is where it lies, once the form is valid."""

    name = NameField(_("Name"), help_text=_("Under which it is shown here; the other programs do not know it."))
    prefix_text = TypedField(
        _("Prefix"),
        missing=_("Say under which prefix the items lie."),
        help_text=_(
            'The program’s subspace: a tuple such as ("legacy", "jobs"), hexadecimal digits such as 0x1516, '
            "or bytes as fdbcli prints them, such as \\x02legacy\\x00."
        ),
        placeholder='("legacy", "jobs")',
    )
    kind = choices_field(
        _("Kind"),
        [
            ("priority", choice(_("Priority"), _("keys are (priority, count, random)"))),
            ("fifo", choice(_("FIFO"), _("keys are (index, random)"))),
        ],
    )
    priority_type = priority_type_field(noted(_("Pushes from here take"), _("any priority of other programs is shown")))
    codec = codec_field()
    parsed_prefix: bytes | tuple[Any, ...] = b""

    @property
    def asked(self) -> dict[str, Any]:
        """What is to be attached, once the form is valid."""
        kind, priority_type = self.cleaned_data["kind"], self.cleaned_data["priority_type"] or "int"
        codec = self.cleaned_data["codec"] or "bytes"
        return {"prefix": self.parsed_prefix, "kind": kind, "priority_type": priority_type, "codec": codec}

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

    reason = TypedField(
        _("Why"),
        max_length=MAX_REASON,
        missing=_("Give a reason: it is shown while the queue is paused."),
        code=False,
        autofocus=True,
    )
    lasting = select_field(
        _("Resumes"),
        [
            ("", _("when it is resumed by hand")),
            ("15m", _("in 15 minutes")),
            ("1h", _("in 1 hour")),
            ("4h", _("in 4 hours")),
            ("24h", _("in 24 hours")),
            ("at", _("at a moment")),
        ],
    )
    at = moment_field(_("Moment"), help_text=_("Only used with “at a moment”."))
    zone = ZoneField()
    until: datetime | None = None

    def clean(self) -> dict[str, Any]:
        """Work out when the queue resumes."""
        cleaned, now = super().clean() or self.cleaned_data, store_now()
        lasting = cleaned.get("lasting") or ""
        if lasting in PAUSES:
            self.until = now + PAUSES[lasting]
        elif lasting == "at":
            self.until = read_moment(self, "at", cleaned)
            if self.until is not None and self.until <= now:
                self.add_error("at", _("That moment has passed."))
        return cleaned


class RenameForm(forms.Form):
    """A new name."""

    name = NameField(
        _("New name"),
        help_text=_(
            "Items, audit and open handles stay. Programs that look the queue up by its old name no longer find it."
        ),
    )


class DetachForm(forms.Form):
    """Why the queue is detached."""

    reason = reason_field(autofocus=True)


class DeleteForm(forms.Form):
    """To delete or to purge: a typed name, the depth that was shown, and why."""

    confirm = TypedField(_("To confirm, type the queue's name:"), autofocus=True)
    reason = reason_field()
    depth = forms.IntegerField(min_value=0, required=True, widget=forms.HiddenInput)

    def __init__(self, *args: Any, name: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        label = self.fields["confirm"].label
        self.fields["confirm"].label = format_html('{} <span class="all">{}</span>', label, display_name(name))
