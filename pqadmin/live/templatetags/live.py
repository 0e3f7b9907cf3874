"""The words that the browser needs to put codes into the reader's language."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language, pgettext
from django.utils.translation import gettext as _

register = template.Library()


def words() -> dict[str, str]:
    """Return every word by its code; the same messages as `pqadmin.dashboard.words` says."""
    return {
        "state-ok": pgettext("state", "ok"),
        "state-empty": pgettext("state", "empty"),
        "state-growing": pgettext("state", "growing"),
        "state-stalled": pgettext("state", "stalled"),
        "state-paused": pgettext("state", "paused"),
        "state-attached": pgettext("state", "attached"),
        "state-unreadable": pgettext("state", "unreadable"),
        "attached-title": _("The items are written by other programs; prefix %(prefix)s"),
        "counting": _("counting…"),
        "counted": _("counted %(age)s ago"),
        "countdown-in": _("in %(left)s"),
        "countdown-now": _("now"),
        "sum-attached": _("%(n)s attached"),
        "sum-uncounted": _("%(n)s not counted yet"),
        "stalled-for": _("stalled · nothing left for %(age)s"),
        "growing-by": _("growing by %(rate)s/s"),
        "somebody": _("somebody"),
        "paused-why": _("paused by %(by)s, %(age)s ago: %(reason)s"),
        "paused": _("paused by %(by)s, %(age)s ago"),
        "resumes": _("resumes %(at)s"),
        "fifo": _("fifo"),
        "closed": _("closed for pushes"),
        "drifted": _("counts drifted"),
        "staging": _("staging: one process takes for all"),
        "enqueue": _("Enqueue"),
        "outlook-unknown": _("no flow seen"),
        "outlook-empty": pgettext("outlook", "empty"),
        "outlook-steady": _("keeps up"),
        "outlook-draining": _("draining"),
        "outlook-growing": _("will not drain"),
        "outlook-stalled": _("stalled"),
        "outlook-paused": pgettext("outlook", "paused"),
        "outlook-attached": pgettext("outlook", "not ours to say"),
        "outlook-unreadable": pgettext("outlook", "not known"),
        "clears": _("clears in %(age)s"),
        "grows": _("grows %(rate)s/s"),
        "problem-unreadable": _("%(n)s unreadable"),
        "problem-stalled": _("%(n)s stalled"),
        "problem-growing": _("%(n)s growing"),
        "problem-drift": _("%(n)s drifted"),
        "problem-old": _("%(n)s waiting long"),
        "problem-dead": _("%(n)s with dead items"),
        "problem-paused": _("%(n)s paused"),
        "problem-none": _("no queue needs a look"),
        "unreadable": _("unreadable: %(reason)s"),
        "waits": _("oldest waits %(age)s"),
        "dead-items": _("%(n)s dead"),
        "sums-age": _("as of %(age)s ago"),
        "gone": _("gone"),
        "item-gone": _("no longer here"),
        "gone-title": _("This queue was deleted; these are its last numbers."),
        "fresh-live": _("live"),
        "fresh-live-title": _("What you see is the store's state now."),
        "fresh-stale": _("stale"),
        "fresh-stale-title": _("The server has not vouched for these numbers for a while."),
        "fresh-reconnecting": _("reconnecting"),
        "fresh-reconnecting-title": _("The connection is gone; these are the last numbers."),
        "fresh-store": _("store unreachable"),
        "fresh-internal": _("The server has an internal error; what is shown is old."),
        "fresh-signed-out": _("signed out"),
        "fresh-signed-out-title": _("Log in again to go on; these are the last numbers."),
        "fresh-outdated": _("reload the page"),
        "fresh-outdated-title": _("This page can not be kept up to date; these are the last numbers."),
    }


@register.simple_tag
def live_words() -> SafeString:
    """Put all words into a template element, for words.js."""
    return _live_words(get_language() or "")


@lru_cache(maxsize=16)
def _live_words(language: str) -> SafeString:
    """Make them once for each language; it is the one in use."""
    entries = format_html_join("", '<i data-word="{}">{}</i>', words().items())
    return format_html('<template id="live-words">{}</template>', entries)
