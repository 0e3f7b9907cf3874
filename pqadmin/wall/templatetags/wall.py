"""Template tags of the wall: words for scripts, times in milliseconds."""

from datetime import datetime

from django import template
from django.utils.safestring import SafeString

from pqadmin.live.templatetags.live import word_template
from pqadmin.wall.words import words

register = template.Library()


@register.simple_tag
def wall_words() -> SafeString:
    """Return the wall's own words in a template element, for wall.js."""
    return word_template("wall-words", words())


@register.filter
def milliseconds(moment: datetime) -> int:
    """Return a moment in milliseconds since the epoch."""
    return int(moment.timestamp() * 1000)
