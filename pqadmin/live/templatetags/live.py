"""How pages say where the words for scripts are, or bring them along."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.conf import settings
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from pqadmin.live import release as pages
from pqadmin.live import words_view as file
from pqadmin.live.words import words

register = template.Library()


@register.simple_tag
def words_file() -> str:
    """Say where words.js finds all words."""
    return file.address(get_language() or settings.LANGUAGE_CODE)


@register.simple_tag
def release() -> str:
    """Say of which release the page is."""
    return pages.release()


@register.simple_tag
def live_words() -> SafeString:
    """Put all words into a template element, for a page that has to go on without the server."""
    return _live_words(get_language() or "")


@lru_cache(maxsize=16)
def _live_words(language: str) -> SafeString:
    """Make them once for each language; it is the one in use."""
    entries = format_html_join("", '<i data-word="{}">{}</i>', words().items())
    return format_html('<template id="live-words">{}</template>', entries)
