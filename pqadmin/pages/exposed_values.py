"""Exposed values: hidden ones that become visible, as rules are lifted, or items moved where fewer rules hold."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.display.redaction import rules_of
from pqadmin.pages.refusals import Uncovers
from queues import Queue
from queues.errors import display_name

#: Characters of a name, and of all rules, in one sentence.
_NAME, _RULES = 80, 120


def lifted(before: Iterable[str], after: Iterable[str]) -> tuple[str, ...]:
    """Return the rules that make values visible: those that are gone, and those that show again.

    Rules are compared as they are written: globs are not compared by what they match.
    """
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    gone = [rule for rule in old if not rule.startswith("!") and rule not in new]
    return (*gone, *(rule for rule in new if rule.startswith("!") and rule not in old))


def in_words(rules: Iterable[str]) -> str:
    """Name rules in a sentence."""
    return write.shorten(write.visible(", ".join(rules)), _RULES)


def asked_for(source: Queue, target: Queue, typed: Mapping[str, Any]) -> str:
    """Return the reason of a move for the audit. Raise `Uncovers` if it uncovers values and that was not ticked."""
    reason = str(typed.get("reason") or "")
    shown = _shown_there(source.config.redact, target.config.redact)
    if not shown:
        return reason
    if not typed.get("uncover"):
        raise Uncovers(warning(source, target))
    # First, as long reasons are cut off at their end.
    return _("Hidden values become visible there (%(rules)s). %(reason)s").strip() % {
        "rules": in_words(shown),
        "reason": reason,
    }


def warning(source: Queue, target: Queue) -> str:
    """Say what becomes visible when items of one queue move to another; empty: nothing does."""
    shown = _shown_there(source.config.redact, target.config.redact)
    if not shown:
        return ""
    return _("%(queue)s shows what is hidden here: %(rules)s. All users of that queue see it, without a reveal.") % {
        "queue": write.shorten(display_name(target.name), _NAME),
        "rules": in_words(shown),
    }


def _shown_there(here: tuple[str, ...], there: tuple[str, ...]) -> tuple[str, ...]:
    if not rules_of(here):
        return ()  # nothing is hidden here
    everywhere = settings.PQADMIN_REDACT
    return lifted((*everywhere, *here), (*everywhere, *there))
