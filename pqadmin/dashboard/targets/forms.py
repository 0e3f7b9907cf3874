"""The form of the targets of a pattern."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pqadmin.dashboard.targets import fields as limits
from pqadmin.pages.fields import TypedField, reason_field
from queues.admin import LIMIT_NAMES, UNSET, Limits, check_glob

#: Longer than any pattern; the core judges what is in it.
_MAX_TYPED = 10_000


class PatternForm(forms.Form):
    """Limits as typed for a pattern. `changes` holds those that are given, once the form is valid."""

    pattern = TypedField(
        _("Pattern"),
        max_length=_MAX_TYPED,
        missing=_("Give a pattern of names."),
        check=check_glob,
        help_text=_("A queue's name in which * stands for any characters and ? for one, such as orders:*."),
        placeholder="orders:*",
        autofocus=True,
    )
    target_depth = limits.target_field("depth")
    target_oldest = limits.target_field("oldest")
    target_wait = limits.target_field("wait")
    target_dead = limits.target_field("dead")
    target_no_consumer = limits.target_field("no_consumer")
    target_growing = limits.target_field("growing")
    reason = reason_field()
    seen = forms.CharField(required=False, max_length=_MAX_TYPED, widget=forms.HiddenInput)

    def __init__(self, *args: Any, glob: str = "", now: Limits = UNSET, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        typed = {f"{limits.PREFIX}{name}": limits.typed_limit(name, getattr(now, name)) for name in LIMIT_NAMES}
        self.initial = {**typed, **self.initial, "seen": json.dumps(now.given)}
        self.glob = glob
        if glob:
            del self.fields["pattern"]
        self.expected: dict[str, float] = {}
        self.changes: dict[str, Any] = {}

    def clean(self) -> dict[str, Any]:
        """Read the limits."""
        cleaned = super().clean() or self.cleaned_data
        self.glob = self.glob or cleaned.get("pattern", "")
        self.expected = _expected(cleaned.get("seen") or "{}")
        for limit in LIMIT_NAMES:
            name = limits.PREFIX + limit
            try:
                value = limits.read_limit(name, cleaned.get(name, ""))
            except forms.ValidationError as error:
                self.add_error(name, error)
                continue
            if value is not None:
                self.changes[limit] = value
        return cleaned

    def expect(self, now: Limits) -> None:
        """Have the form, sent again, go by what is there now."""
        self.data = {**dict(self.data.items()), "seen": json.dumps(now.given)}


def _expected(text: str) -> dict[str, float]:
    try:
        seen = json.loads(text)
    except (ValueError, RecursionError):
        seen = None
    if not isinstance(seen, dict) or not set(seen) <= set(LIMIT_NAMES):
        raise forms.ValidationError(_("The form is damaged: open it again."))
    return seen
