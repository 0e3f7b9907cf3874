"""Forms of boards and links."""

from collections.abc import Mapping
from itertools import chain, count
from typing import Any

from django import forms
from django.conf import settings
from django.urls import reverse_lazy
from django.utils.html import format_html
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.pages.fields import Ticks, VisibleField, choice, choices_field, noted
from pqadmin.wall.models import FEWEST_SECONDS, MOST_SECONDS, SECONDS, Board
from queues.admin import check_glob
from queues.errors import BadGlob, BadName

FIELDS = ("name", "globs", "order", "density", "theme", "language", "rotation", "seconds")
MAX_GLOBS = 50
#: Boards that one screen takes turns with.
MAX_ROTATION = 20
#: Addresses below /boards/ that are taken.
TAKEN = frozenset({"new", "preview"})


#: The languages of a board, by code; the first is none of its own.
LANGUAGES = [("", gettext_lazy("As the screen's browser asks")), *settings.LANGUAGES]


class BoardForm(forms.Form):
    """A board; `board` is None for a new one."""

    name = VisibleField(
        gettext_lazy("Name"),
        max_length=80,
        missing=gettext_lazy("A board needs a name."),
        code=False,
        autocomplete="off",
    )
    slug = VisibleField(
        noted(gettext_lazy("Address"), gettext_lazy("stays for good; empty: made from the name")),
        max_length=60,
        placeholder="/wall/…",
    )
    globs = VisibleField(
        gettext_lazy("Queues"),
        missing=gettext_lazy("Say which queues it shows; * shows all."),
        widget=forms.Textarea,
        code=False,
        rows=5,
        spellcheck="false",
        autocomplete="off",
        hx_get=reverse_lazy("wall:preview"),
        hx_trigger="input changed delay:250ms",
        hx_target="#board-preview",
        hx_swap="innerHTML",
        hx_sync="this:replace",
    )
    order = choices_field(
        gettext_lazy("Order"),
        Board.Order.choices,
        help_text=gettext_lazy("In every order, a queue in trouble has a tile before one that is well."),
    )
    density = choices_field(
        gettext_lazy("Read from"),
        [
            ("far", choice(gettext_lazy("Far"), gettext_lazy("5 m and more: up to 12 tiles"))),
            ("middle", choice(gettext_lazy("Middle"), gettext_lazy("about 3 m: up to 24"))),
            ("near", choice(gettext_lazy("Near"), gettext_lazy("a desk: up to 40"))),
        ],
    )
    theme = choices_field(gettext_lazy("Theme"), Board.Theme.choices)
    language = choices_field(
        gettext_lazy("Language"),
        [(code, format_html('<span lang="{}">{}</span>', code, name) if code else name) for code, name in LANGUAGES],
        required=False,
    )
    rotation = forms.MultipleChoiceField(
        label=gettext_lazy("Take turns with"),
        help_text=gettext_lazy("This board first, then these, and again. A link to this board shows them too."),
        required=False,
        widget=Ticks,
    )
    seconds = forms.IntegerField(
        label=noted(gettext_lazy("Each for"), gettext_lazy("seconds")),
        required=False,
        min_value=FEWEST_SECONDS,
        max_value=MOST_SECONDS,
        error_messages={"invalid": gettext_lazy("A whole number of seconds.")},
        widget=forms.TextInput({"class": "short", "inputmode": "numeric", "autocomplete": "off"}),
    )

    def __init__(self, *, board: Board | None = None, initial: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        stored = board or Board(globs=["*"])
        values = {name: getattr(stored, name) for name in FIELDS} | {"globs": "\n".join(stored.globs)}
        super().__init__(initial=values | dict(initial or {}), **kwargs)
        self.others = list(Board.objects.all() if board is None else Board.objects.exclude(pk=board.pk))
        fields: Any = self.fields
        fields["rotation"].choices = [
            (str(other.pk), format_html("<span><bdi>{}</bdi></span>", write.visible(other.name)))
            for other in self.others
        ]
        fields["globs"].help_text = _(
            "Names, one a line, at most %(n)s; * stands for any characters and ? for one, as in orders:*."
            " A queue that fits any of them is shown."
        ) % {"n": MAX_GLOBS}
        if board is None:
            fields["name"].widget.attrs["autofocus"] = True
        else:
            del fields["slug"]

    def clean_slug(self) -> str:
        """Return an address that no other board has."""
        typed = self.cleaned_data["slug"].strip()
        slug = slugify(typed or self.cleaned_data.get("name", ""))[:60] or "board"
        if typed and slug != typed:
            raise forms.ValidationError(
                _("An address is made of small letters, digits and hyphens, such as “%(slug)s”.") % {"slug": slug}
            )
        if typed and _is_taken(slug):
            raise forms.ValidationError(_("Another board has this address."))
        numbered = (f"{slug[:55]}-{n}" for n in count(2))
        return next(each for each in chain([slug], numbered) if not _is_taken(each))

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

    def differing(self, board: Board) -> list[tuple[str, str, str]]:
        """Return what was typed otherwise than the board is: label, typed value, the board's value."""
        return [
            (str(self.fields[name].label), self._said(name, typed), self._said(name, stored))
            for name in FIELDS
            if (typed := self.cleaned_data[name]) != (stored := getattr(board, name))
        ]

    def _said(self, name: str, value: Any) -> str:
        if name == "globs":
            return "  ".join(value)
        if name == "rotation":
            return ", ".join(other.name for other in self.others if other.pk in value) or "–"
        choices: dict[str, Any] = {
            "order": dict(Board.Order.choices),
            "density": dict(Board.Density.choices),
            "theme": dict(Board.Theme.choices),
            "language": dict(LANGUAGES),
        }
        return str(choices[name][value] if name in choices else value)


def _is_taken(slug: str) -> bool:
    return slug in TAKEN or Board.objects.filter(slug=slug).exists()


class LinkForm(forms.Form):
    """A new link."""

    label = VisibleField(
        gettext_lazy("A link for"),
        max_length=80,
        missing=gettext_lazy("Say which screen it is for."),
        code=False,
        autocomplete="off",
        placeholder=gettext_lazy("the screen in the hall"),
        help_text=gettext_lazy(
            "Its address is shown once and works once, within a day: open it on the screen itself."
            " From then on the screen has a cookie that opens this board and nothing else."
        ),
    )


def parse_globs(text: str) -> list[str]:
    """Return the globs of a text, by lines, blanks or commas. Raises ValidationError that names the first bad one."""
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
