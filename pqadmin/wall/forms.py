"""Forms of boards and links."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.accounts.name_patterns import BadGlob, check_glob
from pqadmin.display.errors import said
from pqadmin.wall.models import FEWEST_SECONDS, MOST_SECONDS, SECONDS, Board
from queues.errors import BadName

MAX_GLOBS = 50
#: Boards that one screen takes turns with.
MAX_ROTATION = 20
#: Addresses below /boards/ that are taken.
TAKEN = frozenset({"new", "preview"})


class BoardForm(forms.Form):
    """A board; `board` is None for a new one."""

    name = forms.CharField(
        strip=True, max_length=80, error_messages={"required": gettext_lazy("A board needs a name.")}
    )
    slug = forms.CharField(required=False, max_length=60)
    globs = forms.CharField(
        strip=True,
        max_length=20_000,
        error_messages={"required": gettext_lazy("Say which queues it shows; * shows all.")},
    )
    order = forms.ChoiceField(choices=Board.Order.choices)
    density = forms.ChoiceField(choices=Board.Density.choices)
    theme = forms.ChoiceField(choices=Board.Theme.choices)
    language = forms.ChoiceField(required=False, choices=settings.LANGUAGES)
    seconds = forms.IntegerField(
        required=False,
        min_value=FEWEST_SECONDS,
        max_value=MOST_SECONDS,
        error_messages={"invalid": gettext_lazy("A whole number of seconds.")},
    )
    rotation = forms.MultipleChoiceField(required=False)

    def __init__(self, *args: Any, board: Board | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._board = board
        self.others = list(Board.objects.all() if board is None else Board.objects.exclude(pk=board.pk))
        choices = self.fields["rotation"]
        assert isinstance(choices, forms.MultipleChoiceField)
        choices.choices = [(str(other.pk), other.name) for other in self.others]

    def clean_slug(self) -> str:
        """Return an address that no other board has; a board keeps its own."""
        if self._board is not None:
            return self._board.slug
        typed = self.cleaned_data["slug"].strip()
        slug = slugify(typed or self.cleaned_data.get("name", ""))[:60] or "board"
        if typed and slug != typed:
            raise forms.ValidationError(
                _("An address is made of small letters, digits and hyphens, such as “%(slug)s”.") % {"slug": slug}
            )
        if typed and (slug in TAKEN or Board.objects.filter(slug=slug).exists()):
            raise forms.ValidationError(_("Another board has this address."))
        free, n = slug, 1
        while free in TAKEN or Board.objects.filter(slug=free).exists():
            n += 1
            free = f"{slug[:55]}-{n}"
        return free

    def clean_globs(self) -> list[str]:
        """Return the globs, each once, in their one spelling."""
        return parse_globs(self.cleaned_data["globs"])

    def clean_seconds(self) -> int:
        """Return the seconds between two boards."""
        return self.cleaned_data["seconds"] or SECONDS

    def clean_rotation(self) -> list[int]:
        """Return the keys of the boards that take turns with this one, in listed order."""
        chosen = set(self.cleaned_data["rotation"])
        if len(chosen) > MAX_ROTATION:
            raise forms.ValidationError(_("A screen takes turns among at most %(n)d boards.") % {"n": MAX_ROTATION})
        return [other.pk for other in self.others if str(other.pk) in chosen]


class LinkForm(forms.Form):
    """A new link."""

    label = forms.CharField(
        strip=True, max_length=80, error_messages={"required": gettext_lazy("Say which screen it is for.")}
    )


def parse_globs(text: str) -> list[str]:
    """Return the globs of a text, by lines, blanks or commas; raises ValidationError that names the first bad one."""
    words = text.replace(",", " ").split()
    if len(words) > MAX_GLOBS:
        raise forms.ValidationError(_("A board has at most %(n)d patterns.") % {"n": MAX_GLOBS})
    found = []
    for word in words:
        try:
            found.append(check_glob(word))
        except (BadGlob, BadName) as error:
            raise forms.ValidationError(
                "%(glob)s: %(error)s", params={"glob": word[:60], "error": said(error)}
            ) from None
    return list(dict.fromkeys(found))
