"""What the wall's templates say: its stylesheets, its words for scripts, moments as scripts count them."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from pqadmin.wall.release import STYLES
from pqadmin.wall.words import words

register = template.Library()


@register.simple_tag
def wall_styles() -> SafeString:
    """Link the stylesheets of the wall."""
    return format_html_join("", '<link rel="stylesheet" href="{}">', ((static(name),) for name in STYLES))


@register.simple_tag
def wall_words() -> SafeString:
    """Put the wall's own words into a template element, for wall.js."""
    entries = format_html_join("", '<i data-word="{}">{}</i>', words().items())
    return format_html('<template id="wall-words">{}</template>', entries)


@register.filter
def milliseconds(moment: datetime) -> int:
    """Return a moment in milliseconds since the epoch."""
    return int(moment.timestamp() * 1000)
