"""Fields of limits, for the settings of a queue and for patterns, and how limits are read and written."""

import re
from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.display import format as write
from pqadmin.display.durations import MAX_DURATION, BadDuration, duration, parse_duration
from pqadmin.pages.fields import TypedField
from queues.admin import LIMIT_NAMES, Target, TargetOrigin

#: What the names of the fields begin with.
PREFIX = "target_"
NAMES = tuple(PREFIX + limit for limit in LIMIT_NAMES)
#: Limits that are numbers of items; the rest are times.
ITEMS = frozenset({"depth", "dead"})
LABELS: dict[str, str | Promise] = {
    "depth": gettext_lazy("Ready items"),
    "oldest": gettext_lazy("Oldest age"),
    "wait": gettext_lazy("Wait of 95 of 100"),
    "dead": gettext_lazy("Dead items"),
    "no_consumer": gettext_lazy("Without a consumer"),
    "growing": gettext_lazy("Growing"),
}
_HELP: dict[str, str | Promise] = {
    "depth": gettext_lazy("Beyond so many ready items a warning, beyond twice as many critical."),
    "oldest": gettext_lazy("How long the oldest item that can be taken may wait."),
    "wait": gettext_lazy("How long 95 of 100 items that were taken in a minute may have waited."),
    "dead": gettext_lazy("From so many dead items on, a warning."),
    "no_consumer": gettext_lazy("How long items may wait while none is taken; then critical."),
    "growing": gettext_lazy("How long the queue may grow: two minutes or more; then a warning."),
}


def target_field(limit: str) -> forms.Field:
    """Return the field of a limit. Empty is inherited; off, or 0, is no limit."""
    return TypedField(
        LABELS[limit],
        max_length=MAX_DURATION,
        help_text=_HELP[limit],
        inputmode="numeric" if limit in ITEMS else "text",
    )


def read_limit(name: str, typed: str) -> float | None:
    """Return the limit that was typed in a field; raise `ValidationError`."""
    text = typed.strip()
    if not text:
        return None
    if text.casefold() in ("off", "0", _("off")):
        return 0
    if name.removeprefix(PREFIX) not in ITEMS:
        try:
            return parse_duration(text)
        except BadDuration as error:
            raise forms.ValidationError(str(error)) from None
    digits = re.sub("[\u202f\u2009 ,]", "", text)
    if not re.fullmatch("[0-9]+", digits):
        raise forms.ValidationError(_("This is no whole number."))
    return int(digits)


def typed_limit(name: str, value: float | None) -> str:
    """Return the limit of a field as the field shows it."""
    if value is None:
        return ""
    if not value:
        return _("off")
    return str(int(value)) if name.removeprefix(PREFIX) in ITEMS else duration(value)


def shown_limit(limit: str, value: float) -> str:
    """Write a limit on a page."""
    if not value:
        return _("off")
    return write.number(int(value)) if limit in ITEMS else duration(value)


def origin_words(limit: str, target: Target) -> str:
    """Return an inherited limit and where it comes from."""
    value = shown_limit(limit, target.limit)
    if target.origin is TargetOrigin.PATTERN:
        return _("%(value)s, from the pattern %(pattern)s") % {"value": value, "pattern": write.visible(target.pattern)}
    return _("%(value)s, the default") % {"value": value}


def inherited(form: forms.Form, targets: dict[str, Target]) -> None:
    """Have the fields say what they inherit while they are empty."""
    for limit, target in targets.items():
        field: Any = form.fields[PREFIX + limit]
        field.widget.attrs["placeholder"] = shown_limit(limit, target.limit)
        words = _("Inherited: %(limit)s.") % {"limit": origin_words(limit, target)}
        field.help_text = f"{field.help_text} {words}"
