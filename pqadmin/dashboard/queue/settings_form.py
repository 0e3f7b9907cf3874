"""The form of a queue's settings: what was typed, what was seen, and both brought together with what is now.

The form carries what its reader saw. Only what he changed is changed; when somebody else changed a setting meanwhile
nothing is saved, and the form shows theirs where he changed nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from queues.admin import SETTING_NAMES, Config, plain_settings, settings_of

#: Settings of attached queues: others would not keep to the rest.
ATTACHED = ("note", "runbook", "redact")
_NUMBERS = ("max_attempts", "max_depth", "max_value")
#: Longer than any setting; the core judges what is in it.
_MAX_TYPED = 10_000


class SettingsForm(forms.Form):
    """Settings as typed. `changes` is what differs from what was seen, once the form is valid."""

    note = forms.CharField(required=False, strip=True, max_length=_MAX_TYPED)
    runbook = forms.CharField(required=False, strip=True, max_length=_MAX_TYPED)
    redact = forms.CharField(required=False, strip=True, max_length=_MAX_TYPED)
    max_attempts = forms.CharField(required=False, strip=True, max_length=40)
    closed = forms.BooleanField(required=False)
    max_depth = forms.CharField(required=False, strip=True, max_length=40)
    max_value = forms.CharField(required=False, strip=True, max_length=40)
    reason = forms.CharField(required=False, max_length=500)
    seen = forms.CharField(required=False, max_length=4 * _MAX_TYPED)

    def __init__(self, *args: Any, attached: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.names = ATTACHED if attached else SETTING_NAMES
        self.expected: dict[str, Any] = {}
        self.changes: dict[str, Any] = {}
        for name in SETTING_NAMES:
            if name not in self.names:
                del self.fields[name]

    def clean(self) -> dict[str, Any]:
        """Find what was changed."""
        cleaned = super().clean() or self.cleaned_data
        self.expected = self._expected(cleaned.get("seen") or "")
        for name in self.names:
            if name not in cleaned:
                continue
            try:
                value = _read(name, cleaned[name])
            except ValueError:
                self.add_error(name, _("This is no whole number."))
                continue
            if plain_settings({name: value})[name] != self.expected.get(name):
                self.changes[name] = value
        return cleaned

    def _expected(self, text: str) -> dict[str, Any]:
        try:
            seen = json.loads(text)
        except ValueError:
            seen = None
        if not isinstance(seen, dict) or set(seen) != set(self.names):
            raise forms.ValidationError(_("The form is damaged: open the settings again."))
        return seen


def _read(name: str, typed: Any) -> Any:
    if name in _NUMBERS:
        return int(re.sub("[\u202f\u2009 ,]", "", typed)) if typed else None
    if name == "redact":
        return tuple(line.strip() for line in str(typed).splitlines() if line.strip())
    if name == "note":
        return str(typed).replace("\r\n", "\n")
    return typed


def typed_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they stand in the fields of the form."""
    typed: dict[str, Any] = {}
    for name, value in settings.items():
        if name == "redact":
            typed[name] = "\n".join(value)
        else:
            typed[name] = "" if value is None else value
    return typed


def seen_of(config: Config) -> str:
    """Return the settings of a queue as the form carries them."""
    names = ATTACHED if config.attached else SETTING_NAMES
    return json.dumps({name: value for name, value in plain_settings(settings_of(config)).items() if name in names})
