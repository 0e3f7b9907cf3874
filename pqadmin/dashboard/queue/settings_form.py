"""The form of a queue's settings: what was typed, what was seen, and both brought together with what is now.

The form carries what its reader saw. Only what differs from that is changed; when a setting was changed meanwhile
nothing is saved, and the form shows theirs where he changed nothing.
"""

import json
import re
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pqadmin.dashboard.targets import fields as limits
from pqadmin.display import format as write
from pqadmin.display.durations import MAX_DURATION
from pqadmin.display.errors import said
from pqadmin.pages.fields import TypedField, noted, reason_field, tick_field
from queues.admin import (
    MAX_FIELDS,
    MAX_NOTE,
    MAX_RULES,
    SETTING_NAMES,
    Config,
    TargetRules,
    check_settings,
    plain_settings,
    settings_of,
)
from queues.errors import BadSetting

#: Settings of attached queues: other programs would not keep to the rest.
ATTACHED = ("note", "runbook", "redact", "preview")
_NUMBERS = ("max_attempts", "max_depth", "max_value")
#: Longer than any setting; the core judges what is in it.
_MAX_TYPED = 10_000


class SettingsForm(forms.Form):
    """Settings as typed. `changes` is what differs from what was seen, once the form is valid."""

    note = TypedField(
        noted(_("Note"), _("plain text, shown on the queue's page")),
        max_length=_MAX_TYPED,
        widget=forms.Textarea,
        code=False,
        rows=4,
        css="prose",
    )
    runbook = TypedField(
        _("Runbook link"),
        max_length=_MAX_TYPED,
        help_text=_("Where it is written what to do when this queue stalls: an http or https address."),
        type="url",
        placeholder="https://",
    )
    redact = TypedField(
        noted(_("Hide the values of these keys"), _("one a line")),
        max_length=_MAX_TYPED,
        widget=forms.Textarea,
        code=False,
        rows=4,
        spellcheck="false",
        autocapitalize="off",
    )
    preview = TypedField(
        noted(_("Show these fields in the list of queues"), _("one a line")),
        max_length=_MAX_TYPED,
        widget=forms.Textarea,
        code=False,
        rows=2,
        spellcheck="false",
        autocapitalize="off",
        placeholder="customer.id",
    )
    max_attempts = TypedField(
        _("Attempts until dead"),
        max_length=40,
        help_text=_("How often an item is leased without being acknowledged. Empty: for ever. Dead ones stay dead."),
        inputmode="numeric",
        placeholder=_("never dead"),
    )
    closed = tick_field(_("Closed for pushes"), _("pushes and moves into it are refused; taking goes on"))
    max_depth = TypedField(
        _("Most items"),
        max_length=40,
        help_text=_("Ready and delayed. What is pushed at the very same moment may pass it by as much."),
        inputmode="numeric",
        placeholder=_("no limit"),
    )
    max_value = TypedField(
        noted(_("Largest value"), _("bytes")),
        max_length=40,
        help_text=_("Larger ones are refused; what is there stays."),
        inputmode="numeric",
        placeholder="90000",
    )
    keep_finished = TypedField(
        _("Keep finished items for"),
        max_length=MAX_DURATION,
        help_text=_(
            "How long the tab Finished lists what programs acknowledged or popped: the newest 10,000 items at most, "
            "with the first 256 bytes of each value. Empty: not at all."
        ),
        placeholder=_("not at all"),
    )
    target_depth = limits.target_field("depth")
    target_oldest = limits.target_field("oldest")
    target_wait = limits.target_field("wait")
    target_dead = limits.target_field("dead")
    target_no_consumer = limits.target_field("no_consumer")
    target_growing = limits.target_field("growing")
    reason = reason_field()
    seen = forms.CharField(required=False, max_length=4 * _MAX_TYPED, widget=forms.HiddenInput)

    def __init__(self, *args: Any, config: Config, rules: TargetRules, **kwargs: Any) -> None:
        self._config, self._rules = config, rules
        self.names = ATTACHED if config.attached else SETTING_NAMES
        settings = settings_of(config)
        typed = {name: "" if value is None else value for name, value in settings.items()}
        typed["redact"] = "\n".join(config.redact)
        typed["preview"] = "\n".join(config.preview)
        typed |= {name: limits.typed_limit(name, settings[name]) for name in (*limits.NAMES, "keep_finished")}
        typed["seen"] = json.dumps({name: plain_settings(settings)[name] for name in self.names})
        super().__init__(*args, **{**kwargs, "initial": typed})
        self.expected: dict[str, Any] = {}
        self.changes: dict[str, Any] = {}
        for name in SETTING_NAMES:
            if name not in self.names:
                del self.fields[name]
        if not config.attached:
            limits.inherited(self, rules.resolve(config.name))
        words = _("Its owner, what to ask before purging it. At most %(n)s characters.")
        self.fields["note"].help_text = words % {"n": write.number(MAX_NOTE)}
        words = _(
            "Key names, or globs such as *token*, whatever their case; at most %(n)s. Pages, searches and exports show "
            "these values hidden until a user reveals one, which is audited. The items themselves stay as they are. "
            "Operators add rules; only admins take one away, or add one with “!” that shows again what another hides."
        )
        self.fields["redact"].help_text = words % {"n": write.number(MAX_RULES)}
        words = _(
            "Of the first and the last item, where their values are JSON or msgpack: paths of keys with dots between "
            "them; at most %(n)s. Redacted ones stay hidden. Empty: the beginning of the value."
        )
        self.fields["preview"].help_text = words % {"n": write.number(MAX_FIELDS)}

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
            except forms.ValidationError as error:
                self.add_error(name, error)
                continue
            try:
                check_settings(self._config, {name: value})
            except BadSetting as error:  # here, so that all that is wrong is shown at once
                self.add_error(name, said(error))
                continue
            if plain_settings({name: value})[name] != self.expected.get(name):
                self.changes[name] = value
        return cleaned

    def merged(self, config: Config) -> "SettingsForm":
        """Return a form with what was typed where this one changes something, and what is there now elsewhere."""
        again = SettingsForm(config=config, rules=self._rules)
        again.initial.update({name: self[name].value() for name in (*self.changes, "reason")})
        return again

    def _expected(self, text: str) -> dict[str, Any]:
        try:
            seen = json.loads(text)
        except (ValueError, RecursionError):
            seen = None
        if not isinstance(seen, dict) or set(seen) != set(self.names):
            raise forms.ValidationError(_("The form is damaged: open the settings again."))
        return seen


def _read(name: str, typed: Any) -> Any:
    if name in limits.NAMES:
        return limits.read_limit(name, typed)
    if name == "keep_finished":
        return limits.read_limit(name, typed) or None
    if name in _NUMBERS:
        return int(re.sub("[\u202f\u2009 ,]", "", typed)) if typed else None
    if name in ("redact", "preview"):
        return tuple(line.strip() for line in str(typed).splitlines() if line.strip())
    if name == "note":
        return str(typed).replace("\r\n", "\n")
    return typed
