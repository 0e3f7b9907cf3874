"""Template tags for the words that scripts use."""

from functools import lru_cache

from django import template
from django.conf import settings
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from pqadmin.live import asset_version
from pqadmin.live import words_view as file
from pqadmin.live.consumers_panel import held_address
from pqadmin.live.words import level_word, standing_words, words, worst_words

register = template.Library()
register.filter(worst_words)
register.filter(held_address)

register.filter("level_word", level_word)
register.filter("standing", standing_words)


@register.simple_tag
def words_file() -> str:
    """Return the address of the file with all words."""
    return file.address(get_language() or settings.LANGUAGE_CODE)


@register.simple_tag
def release() -> str:
    """Return the release of the page."""
    return asset_version.release()


@register.simple_tag
def live_words() -> SafeString:
    """Return all words in a template element, for pages that must work offline."""
    return _live_words(get_language() or "")


@lru_cache(maxsize=16)
def _live_words(language: str) -> SafeString:
    """Make them once for each language; `language` is the current one."""
    return word_template("live-words", words())


def word_template(name: str, texts: dict[str, str]) -> SafeString:
    """Return a template element with words by their codes, for scripts."""
    entries = format_html_join("", '<i data-word="{}">{}</i>', texts.items())
    return format_html('<template id="{}">{}</template>', name, entries)
