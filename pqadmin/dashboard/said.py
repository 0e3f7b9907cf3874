"""What an error of the queue core says, in the reader's language."""

from __future__ import annotations

from django.utils.translation import gettext

from pqadmin.dashboard import format as write
from queues.errors import Worded, Words


def said(error: Exception | str) -> str:
    """Return the words of an error, translated where they are the core's; nothing in them draws outside itself."""
    if isinstance(error, Worded):
        error = error.words
    return write.visible(_translated(error if isinstance(error, str) else str(error)))


def _translated(text: str) -> str:
    if not isinstance(text, Words):
        return text
    template = gettext(text.template)
    if not text.values:
        return template
    return template.format(
        **{name: _translated(value) if isinstance(value, str) else value for name, value in text.values.items()}
    )
