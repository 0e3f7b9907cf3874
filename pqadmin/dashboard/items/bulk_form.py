"""The form of an act on all that fits: what each act needs, how fast, why, and what was seen when it was confirmed."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from pqadmin.dashboard.items.action_forms import ReprioritizeForm
from pqadmin.display.errors import said
from pqadmin.pages.fields import (
    MAX_PRIORITY,
    Suggested,
    TypedField,
    choice,
    choices_field,
    keep_choices,
    noted,
    reason_field,
    tick_field,
)
from pqadmin.pages.visibility import NotThere
from queues import Queue, QueueStatus
from queues.admin import BULK_FASTEST, BULK_SLOWEST, check_name, parse_priority
from queues.errors import BadName, BadPriority, QueueNotFound


class BulkForm(forms.Form):
    """What an act on all is told. `arguments` are for `begin_bulk`, once the form is valid."""

    to = TypedField(_("To the queue"), widget=Suggested)
    priority = TypedField(noted(_("Priority"), _("with “Set”")), max_length=MAX_PRIORITY, strip=False)
    #: Values that are hidden here may be seen there.
    uncover = tick_field(_("Hidden values become visible there"), _("to all users of that queue; the audit records it"))
    how = choices_field(
        _("Which priority they get"),
        [
            ("set", choice(_("Set"), _("all get the priority beside"))),
            ("shift", choice(_("Shift"), _("each by the number beside"))),
            ("front", choice(_("Front"), _("they leave first, in their order"))),
            ("back", choice(_("Back"), _("they leave last, in their order"))),
        ],
        required=False,
    )
    shift = TypedField(noted(pgettext_lazy("shift", "By"), _("with “Shift”: −5, 10")), max_length=400)
    rate = TypedField(noted(_("Items a second"), _("empty: no limit")), max_length=20, inputmode="decimal")
    reason = reason_field()
    #: How many the page showed, whether that was all, and how many it had looked at.
    count = forms.IntegerField(min_value=0, required=True, widget=forms.HiddenInput)
    ended = forms.BooleanField(required=False, widget=forms.HiddenInput)
    searched = forms.IntegerField(min_value=0, required=False, widget=forms.HiddenInput)

    def __init__(
        self,
        *args: Any,
        act: str,
        status: QueueStatus,
        state: str,
        target: Callable[[str], Queue],
        targets: Sequence[str],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        cast("Suggested", self.fields["to"].widget).suggestions = targets
        if act == "move":
            self.fields["priority"].label = noted(_("Priority there"), _("empty: each keeps its own"))
        ways = {"front", "back"} if state == "ready" else set()
        ways |= set() if status.kind == "fifo" else {"set"} if status.priority_type == "str" else {"set", "shift"}
        keep_choices(self, "how", ways)
        self.arguments: dict[str, Any] = {}
        self._act = act
        self._status = status
        self._target = target

    def clean(self) -> dict[str, Any]:
        """Read what the act needs."""
        cleaned = super().clean() or self.cleaned_data
        if self._act == "move":
            self._read_target(str(cleaned.get("to") or ""), str(cleaned.get("priority") or ""))
        elif self._act == "reprioritize":
            self._read_priority()
        if text := cleaned.get("rate"):
            with suppress(ValueError):
                rate = float(text)
                if BULK_SLOWEST <= rate <= BULK_FASTEST:
                    self.arguments["rate"] = rate
            if "rate" not in self.arguments:
                self.add_error("rate", _("A number of items a second, from 1 on; nothing for as fast as it goes."))
        return cleaned

    def _read_target(self, name: str, priority: str) -> None:
        if not name:
            self.add_error("to", _("Say which queue the items move to."))
            return
        try:
            target = self._target(check_name(name))
        except (BadName, QueueNotFound, NotThere) as error:
            self.add_error("to", said(error))
            return
        self.arguments["to"] = target.name
        if target.id == self._status.id:
            self.add_error("to", _("The items are in this queue already: name another one."))
        elif priority and target.kind == "fifo":
            self.add_error("priority", _("The items of a fifo queue have no priorities."))
        elif priority:
            try:
                self.arguments["priority"] = parse_priority(priority, target.priority_type)
            except BadPriority as error:
                self.add_error("priority", said(error))

    def _read_priority(self) -> None:
        fifo, kind = self._status.kind == "fifo", self._status.priority_type
        inner = ReprioritizeForm(self.data, fifo=fifo, priority_type=kind)
        if inner.is_valid():
            self.arguments |= inner.change
        for field in ("priority", "shift"):
            for error in inner.errors.get(field, []):
                self.add_error(field, str(error))
