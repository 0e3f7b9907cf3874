"""What templates say: icons, numbers, ages, priorities, messages. Formats come from `pqadmin.display.format`."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from django import template
from django.template import Context
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pqadmin import jobs
from pqadmin.accounts.scope import scope_of
from pqadmin.display import format as write
from pqadmin.display import highlight, items, prefixes
from pqadmin.display.error_text import error_text
from pqadmin.display.moments import ZONES
from pqadmin.display.redaction import Redaction, rules_of
from pqadmin.display.words import actor_words, done_words, item_state_word, view_word
from pqadmin.live.words import countdown_words, counted_words
from pqadmin.load.sample import sample_load, sample_plans
from pqadmin.pages import form_idempotency, reader_preferences, visibility
from pqadmin.pages.toasts import Toast, read, shows
from pqadmin.store import store_now, store_skew
from queues import Item
from queues.admin import SKEWED_CLOCK
from queues.errors import display_name

register = template.Library()

#: Characters of a worker's name, or of the reason of a death, beside an item's state.
_STATE_WIDTH = 40

register.filter("done", done_words)
register.filter("actor", actor_words)
register.filter("number", write.number)
register.filter("brief", write.brief)
register.filter("rate", write.rate)
register.filter("share", write.share)
register.filter("bytes", write.size)
register.filter("moment", write.moment)
register.filter("clock", write.clock)
register.filter("iso", write.iso)
register.filter("priority", write.priority)
register.filter("priority_short", write.priority_short)
register.filter("visible", write.visible)
register.filter("shown", display_name)
register.filter("counted", write.counted)
register.filter("item_state", item_state_word)
register.filter("view_word", view_word)
register.filter("item_priority", items.priority_short)
register.filter("item_key", items.key)
register.filter("rules", rules_of)
register.filter("prefix", prefixes.prefix_text)
register.filter("escaped", prefixes.escaped)


@register.filter
def visible_lines(text: str) -> str:
    """Make hidden characters of a text of several lines visible, its line breaks apart."""
    return "\n".join(write.visible(line) for line in text.split("\n"))


@register.filter
def host(address: str) -> str:
    """Return the host that an address leads to, as a reader should see it before he follows."""
    return write.shorten(write.visible(urlsplit(address).hostname or ""), 80)


@register.filter
def raw_rate(per_second: float | None) -> str:
    """Write a rate for a `data-value`, as the live view does; empty while unknown."""
    return "" if per_second is None else f"{per_second:.9g}"


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draw an icon of the sprite. It is decoration, the words beside it say what it means."""
    return _icon(name, static("pqadmin/icons/sprite.svg"))


@lru_cache(maxsize=128)
def _icon(name: str, sprite: str) -> SafeString:
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', sprite, name)


@register.simple_tag(takes_context=True)
def sample_number(context: Context) -> str:
    """Return the number of the form that starts the sample load."""
    return form_idempotency.number(context["request"], "sample-load")


@register.simple_tag(takes_context=True)
def sample_ends(context: Context) -> datetime | None:
    """Return when the sample load ends by itself. None while none is at work that the reader sees something of."""
    ends = sample_load.ends_at
    return (
        ends if ends and visibility.scope(context["request"]).of_those(plan.name for plan in sample_plans()) else None
    )


@register.simple_tag(takes_context=True)
def sample_ended(context: Context) -> bool:
    """Say whether the reader sees the queues of an ended sample load and no other, and may start it again.

    One that `pqadmin load` runs has not ended while items flow, or a process takes some.
    """
    rows, planned = context["seen"].rows, {plan.name for plan in sample_plans()}
    if not rows or sample_load.ends_at or not may_run_sample(context):
        return False
    if any(row.rate_in or row.rate_out or row.status.consumers.live for row in rows):
        return False
    return len(rows) <= len(planned) and all(row.status.name in planned for row in rows)


@register.simple_tag(takes_context=True)
def may_run_sample(context: Context) -> bool:
    """Say whether the reader may act on all queues of the sample load, and so start and stop it."""
    may = visibility.scope(context["request"])
    return all(visibility.may_name(may, plan.name) for plan in sample_plans())


@register.simple_tag
def stamp(moment: datetime | None) -> SafeString | str:
    """Write a moment in the reader's time zone, with UTC on hover."""
    return _time(moment, write.moment)


@register.simple_tag
def stamp_clock(moment: datetime | None, now: datetime | None = None) -> SafeString | str:
    """Write a moment in the reader's time zone, its date only where that is not today's, with UTC on hover."""
    return _time(moment, lambda at: write.clock(at, now))


def _time(moment: datetime | None, write_it: Callable[[datetime], str], more: str = "") -> SafeString | str:
    """Write a moment as an element, with UTC on hover."""
    if moment is None:
        return write.UNKNOWN
    return format_html(
        '<time {}datetime="{}" title="{}">{}</time>',
        more,
        write.iso(moment),
        write.moment_and_utc(moment),
        write_it(moment),
    )


@register.simple_tag(takes_context=True)
def time_zone(context: Context) -> str:
    """Return the name of the reader's time zone."""
    return reader_preferences.time_zone(context.get("request"))


@register.simple_tag
def time_zones() -> Sequence[str]:
    """Return the names of time zones that fields suggest."""
    return ZONES


@register.simple_tag
def clock_skew() -> dict[str, str]:
    """Say by how much this site's clock is ahead of the store's, or behind. Nothing while that is little."""
    skew = store_skew()
    return {"ahead" if skew > 0 else "behind": write.age(abs(skew))} if abs(skew) > SKEWED_CLOCK else {}


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """Return the chosen theme: light, dark, or empty for the system's."""
    return reader_preferences.theme(context.get("request"))


@register.simple_tag
def environment_kind(environment: str | None) -> str:
    """Return `production` for what calls itself so, else `other`: production gets a red edge."""
    return "production" if (environment or "").strip().casefold().startswith(("prod", "live")) else "other"


@register.simple_tag(takes_context=True)
def toasts(context: Context) -> list[Toast]:
    """Return the messages with their undo; none where a script only looks: they wait for the page that shows them."""
    return [read(message) for message in context.get("messages") or ()] if shows(context.get("request")) else []


@register.simple_tag
def age(moment: datetime | None, now: datetime | None = None) -> SafeString | str:
    """Write how long ago a moment was, as an element that the page keeps current."""
    return _time(moment, lambda at: write.age_since(at, now or datetime.now(UTC)), "data-age ")


@register.simple_tag
def countdown(moment: datetime | None, now: datetime | None = None) -> SafeString | str:
    """Write how long it is until a moment, as an element that the page keeps counting down; "now" once it has come.

    `now` is the moment of the page. Nothing is announced while it counts.
    """
    if moment is None:
        return write.UNKNOWN
    now = now or store_now()
    return format_html(
        '<time data-countdown datetime="{}" data-now="{}" title="{}">{}</time>',
        write.iso(moment),
        int(now.timestamp() * 1000),
        write.moment_and_utc(moment),
        countdown_words(moment, now),
    )


@register.simple_tag(takes_context=True)
def hit(context: Context, item: Item, text: str, width: int = write.PREVIEW_WIDTH) -> str:
    """Write an item's value on one line, with the hits of a search marked."""
    return highlight.hit(item, text, context["rules"], width=width) or items.preview(item, context["rules"], width)


@register.simple_tag(takes_context=True)
def preview(context: Context, item: Any, rules: Redaction | None = None, width: int = write.PREVIEW_WIDTH) -> str:
    """Write an item's value on one line, by the rules of redaction that are given or in the context."""
    return items.preview(item, context["rules"] if rules is None else rules, width)


@register.simple_tag
def countdown_or_none(moment: datetime | None, now: datetime) -> SafeString | str:
    """Write a countdown, or nothing where the live view may put one."""
    return "" if moment is None else countdown(moment, now)


@register.simple_tag
def counted_ago(moment: datetime | None, now: datetime | None = None) -> SafeString:
    """Say how old the depth of an attached queue is, as an element that the page keeps current."""
    text = counted_words(moment, now or store_now())
    return format_html(
        '<span class="counted" data-field="counted" data-counted="{}">{}</span>', write.iso(moment), text
    )


@register.filter("error_text")
def error_text_of(text: str, redact: tuple[str, ...]) -> str:
    """Write an error of a queue with these rules."""
    return error_text(text, rules_of(redact))


@register.simple_tag
def error_hit(text: str, redact: tuple[str, ...], searched: str) -> str:
    """Write an error of a queue with these rules, with the hits of a search marked."""
    shown = error_text(text, rules_of(redact))
    return highlight.marked(shown, searched, width=len(shown)) or shown


register.filter(items.row_mark)


@register.filter
def state_of(item: Item, redact: tuple[str, ...] = ()) -> str:
    """Say in which state an item of a queue with these rules is, and what matters about that."""
    if item.state == "delayed" and item.due_at is not None:
        return _("due %(at)s") % {"at": write.clock(item.due_at)}
    if item.state == "leased":
        worker = write.shorten(write.visible(item.worker), _STATE_WIDTH) or _("an unnamed worker")
        return _("leased by %(worker)s") % {"worker": worker}
    if item.state == "dead" and item.reason:
        reason = error_text_of(item.reason, redact)
        return _("dead: %(reason)s") % {"reason": write.shorten(reason, _STATE_WIDTH)}
    return item_state_word(item.state)


@register.simple_tag(takes_context=True)
def running_jobs(context: Context) -> SafeString | str:
    """Write how many jobs are running that the person sees; nothing where none is.

    As this process last saw, or as the page has read: it shows the same jobs.
    """
    read, user = context.get("all_running"), context.get("user")
    running = jobs.running() if read is None else read
    if not running or user is None:
        return ""
    may = scope_of(user)
    n = sum(visibility.sees_job(may, job) for job in running)
    if not n:
        return ""
    words = ngettext("%(n)s running", "%(n)s running", n) % {"n": write.number(n)}
    return format_html(
        ' <span class="count" aria-hidden="true">{}</span><span class="visually-hidden"> {}</span>',
        write.number(n),
        words,
    )
