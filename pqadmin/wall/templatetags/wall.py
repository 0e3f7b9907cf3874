"""Template tags of the wall: stylesheets, words for scripts, times in milliseconds."""

from datetime import datetime

from django import template
from django.templatetags.static import static
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from pqadmin.live.templatetags.live import word_template
from pqadmin.wall.release import STYLES
from pqadmin.wall.words import words

register = template.Library()


@register.simple_tag
def wall_styles() -> SafeString:
    """Link the stylesheets of the wall."""
    return format_html_join("", '<link rel="stylesheet" href="{}">', ((static(name),) for name in STYLES))


@register.simple_tag
def wall_words() -> SafeString:
    """Return the wall's own words in a template element, for wall.js."""
    return word_template("wall-words", words())


@register.filter
def milliseconds(moment: datetime) -> int:
    """Return a moment in milliseconds since the epoch."""
    return int(moment.timestamp() * 1000)
