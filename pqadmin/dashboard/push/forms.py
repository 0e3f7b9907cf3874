"""The form that pushes many items, and a look at a value."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.display.values import NotJSON, parse_json
from pqadmin.pages import uploads
from pqadmin.pages.fields import INPUT_MODES, MAX_PRIORITY, TypedField, noted, reason_field, select_field
from pqadmin.pages.push_form import WhenForm
from queues import Priority, QueueStatus
from queues.admin import MAX_PUSH_JOB_ITEMS, parse_priority
from queues.errors import BadPriority

#: As much text as a form may carry.
MAX_PASTED = 2_000_000


class ManyForm(WhenForm):
    """Several items, pasted or as a file."""

    items = TypedField(
        _("Paste NDJSON, CSV or plain lines"),
        max_length=MAX_PASTED,
        strip=False,
        widget=forms.Textarea,
        code=False,
        rows=12,
        spellcheck="false",
        wrap="off",
    )
    format = select_field(
        _("Format"),
        [
            ("", _("tell by its beginning")),
            ("ndjson", "NDJSON"),
            ("csv", "CSV"),
            ("lines", _("plain lines: each is a value")),
        ],
    )
    priority = TypedField(_("Priority of plain lines"), max_length=MAX_PRIORITY, required=False, css="mono-input short")
    file = forms.FileField(
        required=False,
        allow_empty_file=True,
        max_length=1_000,
        widget=forms.FileInput({"accept": ".ndjson,.jsonl,.json,.csv,text/csv,application/x-ndjson"}),
    )
    reason = reason_field()

    def __init__(self, *args: Any, status: QueueStatus, **kwargs: Any) -> None:
        super().__init__(*args, status=status, **kwargs)
        size = _("at most %(size)s") % {"size": write.size(uploads.MAX_FILE)}
        self.fields["file"].label = noted(_("Or a file"), size)
        text: list[Any] = [
            _("Up to 1 000 items and 5 MB go in as one transaction, in this order: they arrive all or none.")
        ]
        if not status.attached:
            words = _(
                "More, up to %(most)s items, go in as a bulk job: in chunks, in this order, with progress; "
                "it can be canceled and undone."
            )
            text.append(words % {"most": write.number(MAX_PUSH_JOB_ITEMS)})
        self.fields["items"].help_text = " ".join(map(str, text))
        self._type = status.priority_type
        self.fields["priority"].widget.attrs["inputmode"] = INPUT_MODES.get(self._type, "text")
        if status.kind == "fifo":
            del self.fields["priority"]

    def priority_of_lines(self) -> Priority | None:
        """Return the priority of plain lines as it was sent; None where there is none, or none that can be read."""
        text = str(self.data.get("priority") or "")
        try:
            return parse_priority(text, self._type) if "priority" in self.fields and text else None
        except BadPriority:
            return None

    def clean(self) -> dict[str, Any]:
        """Ask for the priority of plain lines."""
        cleaned = super().clean()
        if cleaned.get("format") == "lines" and "priority" in self.fields:
            try:
                parse_priority(str(cleaned.get("priority") or ""), self._type)
            except BadPriority as error:
                self.add_error("priority", said(error))
        return cleaned


def check(payload: bytes) -> dict[str, Any]:
    """Say whether bytes are JSON, how many they are, and what is wrong where."""
    size = write.size(len(payload))
    try:
        parse_json(payload.decode("utf-8"))
    except NotJSON as error:
        return {"good": False, "text": str(error), "size": size}
    except UnicodeDecodeError:
        return {"good": False, "text": gettext("These bytes are no text, so no JSON."), "size": size}
    return {"good": True, "text": gettext("This is JSON."), "size": size}
