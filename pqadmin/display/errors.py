"""What an error of the queue core says, in the reader's language."""

from django.conf import settings
from django.utils import translation

from pqadmin.display import format as write
from queues.errors import Worded, Words


def said(error: Exception | str) -> str:
    """Return the words of an error, translated where they are the core's. Nothing in them draws outside itself."""
    if isinstance(error, Worded):
        error = error.words
    return write.visible(_translated(error if isinstance(error, str) else str(error)))


def in_languages(words: str) -> dict[str, str]:
    """Return words of the core in each language in which they differ."""
    found = {}
    for language, _ in settings.LANGUAGES:
        with translation.override(language):
            found[language] = said(words)
    return {language: text for language, text in found.items() if text != words}


def _translated(text: str) -> str:
    if not isinstance(text, Words):
        return text
    words = translation.gettext(text.template)
    if text.values:
        words = words.format(
            **{name: _translated(value) if isinstance(value, str) else value for name, value in text.values.items()}
        )
    return words if text.stops else words.rstrip(".。")
