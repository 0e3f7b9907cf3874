"""Fields that several forms share: their labels, widgets and limits."""

import base64
import binascii
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.display.moments import MAX_ZONE, UNITS, BadMoment, BadZone, parse_moment
from queues.admin import check_name
from queues.errors import QueueError

#: A text for pages, translated when it is shown.
Words = Any
MAX_REASON = 500
MAX_NAME, MAX_PRIORITY = 20_000, 2_000
#: As much text as the largest value can take in any encoding; the core judges the bytes.
MAX_TYPED = 400_000


def _noted(label: Words, note: Words) -> str:
    return format_html("{} <small>{}</small>", label, note)


def _choice(label: Words, words: Words) -> str:
    return format_html("<span>{}</span><small>{}</small>", label, words)


#: A label with a note in small letters.
noted: Any = lazy(_noted, str)
#: What one of several choices says: its name, and what it means.
choice: Any = lazy(_choice, str)


class TypedField(forms.CharField):
    """Text as typed. Too long text is refused: a browser would cut it off without a word."""

    def __init__(
        self,
        label: Words = "",
        *,
        max_length: int = MAX_NAME,
        help_text: Words = "",
        widget: type[forms.Widget] = forms.TextInput,
        code: bool = True,
        css: str = "",
        required: bool = False,
        missing: Words = "",
        strip: bool = True,
        check: Callable[[str], str] = str,
        **attrs: Any,
    ) -> None:
        kept = {name.replace("_", "-"): value for name, value in attrs.items()}
        if code:
            kept = {"class": "mono-input", "autocomplete": "off", "spellcheck": "false"} | kept
        if css:
            kept["class"] = css
        super().__init__(
            label=label,
            help_text=help_text,
            max_length=max_length,
            required=required or bool(missing),
            strip=strip,
            widget=widget(kept),
            error_messages={"required": missing} if missing else None,
        )
        self._check = check

    def clean(self, value: Any) -> str:
        """Check what was typed by the rule that the field was given."""
        text = str(super().clean(value))
        try:
            return self._check(text) if text else text
        except (QueueError, ValueError) as error:
            raise forms.ValidationError(said(error)) from None

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """Return the attributes of the widget, without a limit of its own."""
        attrs = super().widget_attrs(widget)
        attrs.pop("maxlength", None)
        return attrs


class VisibleField(TypedField):
    """Text that is shown again with its hidden characters visible."""

    def prepare_value(self, value: Any) -> Any:
        """Show hidden characters but line breaks."""
        if not isinstance(value, str):
            return value
        return "\n".join(map(write.visible, value.replace("\r\n", "\n").split("\n")))


class NameField(VisibleField):
    """The name of a new queue, by the core's rule."""

    def __init__(self, label: Words, **options: Any) -> None:
        super().__init__(label, missing=_("A queue needs a name."), check=check_name, autofocus=True, **options)


class Suggested(forms.TextInput):
    """A text field that suggests values."""

    template_name = "forms/suggested.html"
    suggestions: Iterable[str] = ()

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Return what the template shows."""
        context = super().get_context(name, value, attrs)
        context["widget"]["suggestions"] = self.suggestions
        context["widget"]["attrs"]["list"] = f"{context['widget']['attrs']['id']}s"
        return context


class Zone(Suggested):
    """A text field that suggests time zones."""

    template_name = "forms/zone.html"


class ZoneField(TypedField):
    """A time zone, the reader's to begin with; empty is UTC."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(_("Time zone"), max_length=MAX_ZONE, widget=Zone, css="zone", data_zone=True, **attrs)
        self.initial = timezone.get_current_timezone_name

    def prepare_value(self, value: Any) -> Any:
        """Show what an empty zone means."""
        return timezone.get_current_timezone_name() if value is None else value or "UTC"


class Choices(forms.RadioSelect):
    """Radio buttons with what each means, side by side."""

    template_name = "forms/choices.html"


class Ticks(forms.CheckboxSelectMultiple):
    """Choices to tick, side by side."""

    template_name = "forms/choices.html"


def choices_field(
    label: Words, options: Sequence[tuple[str, Words]], columns: str = "", **kwargs: Any
) -> forms.ChoiceField:
    """Return a field of radio buttons; its first option is the one to begin with."""
    widget = Choices({"class": columns})
    return forms.ChoiceField(label=label, choices=options, widget=widget, initial=options[0][0], **kwargs)


def keep_choices(form: forms.Form, name: str, values: Collection[str]) -> None:
    """Leave out the other choices of a field, and begin with the first one."""
    field: Any = form.fields[name]
    field.choices = [each for each in field.choices if each[0] in values]
    field.initial = field.choices[0][0] if field.choices else None


class SelectField(forms.ChoiceField):
    """A list to choose from. A form without it is shown again with the option to begin with."""

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the option that is shown."""
        return initial if data is None else data


def select_field(label: Words, options: Sequence[tuple[Any, Words]], **kwargs: Any) -> forms.ChoiceField:
    """Return a field of a list to choose from, which may be left out. It begins with the first option."""
    return SelectField(label=label, choices=options, required=False, **{"initial": options[0][0], **kwargs})


def tick_field(label: Words, words: Words) -> forms.BooleanField:
    """Return a field to tick."""
    widget = forms.CheckboxInput({"value": "on"})
    return forms.BooleanField(
        label=choice(label, words), required=False, widget=widget, template_name="forms/tick.html"
    )


def reason_field(**attrs: Any) -> forms.CharField:
    """Return the field for the reason of an action."""
    widget = forms.TextInput(attrs)
    return forms.CharField(
        label=noted(_("Why"), _("for the audit")), required=False, max_length=MAX_REASON, widget=widget
    )


def moment_field(label: Words = None, *, help_text: Words = "", **attrs: Any) -> TypedField:
    """Return the field for a moment in a time zone."""
    return TypedField(
        label or _("Date and time"), max_length=60, help_text=help_text, type="datetime-local", step="1", **attrs
    )


def read_moment(form: forms.Form, name: str, cleaned: Mapping[str, Any]) -> datetime | None:
    """Return the moment of a field, in the zone of the form. None when it is wrong, with the error at its field."""
    try:
        return parse_moment(str(cleaned.get(name) or ""), str(cleaned.get("zone") or ""))
    except BadMoment as error:
        form.add_error(name, str(error))
    except BadZone as error:
        form.add_error("zone", str(error))
    return None


def unit_field(options: Sequence[tuple[str, Words]] = ()) -> forms.ChoiceField:
    """Return the field for a unit of time."""
    options = options or [(unit, unit) for unit in UNITS]
    return select_field(_("Unit"), options, initial="min")


def value_field(**attrs: Any) -> TypedField:
    """Return the field for the value of an item."""
    return TypedField(
        _("Value"),
        max_length=MAX_TYPED,
        strip=False,
        widget=forms.Textarea,
        help_text=_("Any bytes, at most 90 000; empty is a value too."),
        code=False,
        spellcheck="false",
        **attrs,
    )


def payload(form: forms.Form, cleaned: Mapping[str, Any]) -> bytes:
    """Return the bytes of a value as typed; a browser's line ends become plain ones."""
    text = cleaned.get("value") or ""
    if cleaned.get("encoding") != "base64":
        return str(text).replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode("".join(str(text).split()), validate=True)
    except (binascii.Error, ValueError):
        form.add_error("value", _("This is not base64."))
        return b""


def encoding_field() -> forms.ChoiceField:
    """Return the field for how a value is typed."""
    return select_field(_("Typed as"), [("text", _("text (UTF-8)")), ("base64", "base64")])


def priority_type_field(label: Words) -> forms.ChoiceField:
    """Return the field for the type of a queue's priorities."""
    options = [
        ("int", choice("int", _("whole numbers of any size"))),
        ("float", choice("float", _("numbers with a fraction"))),
        ("str", choice("str", _("text, such as 2026-11-20"))),
    ]
    return choices_field(label, options, "three", required=False)


#: The keyboard of a phone for priorities of a type.
INPUT_MODES = {"int": "numeric", "float": "decimal"}
