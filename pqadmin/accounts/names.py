"""Names of people: what cannot be seen is refused, in every form and by every command."""

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from queues.errors import is_invisible


def check_visible(name: str) -> None:
    """Raise ValidationError for a name with a character that cannot be seen."""
    for character in name:
        if is_invisible(character):
            raise ValidationError(
                _("A name has no characters that cannot be seen, such as U+%(code)s."),
                code="invisible",
                params={"code": f"{ord(character):04X}"},
            )


def findable(text: str) -> str:
    """Return a text that every database can look for: no name of anything holds a NUL."""
    return text.replace("\0", "\ufffd")


def refuse_invisible() -> None:
    """Have Django's own users checked too: no form or command can be forgotten."""
    validators = User._meta.get_field("username").validators  # noqa: SLF001 # Django's documented interface
    if check_visible not in validators:
        validators.append(check_visible)
