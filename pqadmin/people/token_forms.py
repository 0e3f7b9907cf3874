"""The form of a new token."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pqadmin import token_lifecycle
from pqadmin.accounts.caller import QUEUE_VERBS, Verb
from pqadmin.pages.fields import Ticks, TypedField, choice, keep_choices, noted

_MAX_TYPED = 20_000


def _read_queues(text: str) -> str:
    return " ".join(token_lifecycle.read_globs(text))


class TokenForm(forms.Form):
    """A name, verbs, queues, and limits of time and rate."""

    name = TypedField(
        _("Name"),
        max_length=_MAX_TYPED,
        missing=_("A token needs a name."),
        check=token_lifecycle.check_name,
        help_text=_("The program that uses it; the audit names it so."),
        autocapitalize="off",
        autofocus=True,
    )
    verbs = forms.MultipleChoiceField(
        label=_("It may"),
        choices=[(verb.value, choice(verb.value, verb.label)) for verb in Verb],
        widget=Ticks({"class": "three"}),
        initial=[Verb.READ.value],
        error_messages={"required": _("Choose what the token may do.")},
    )
    queues = TypedField(
        _("Queues"),
        max_length=_MAX_TYPED,
        missing=_("Say which queues: a name, or a pattern such as orders:*."),
        check=_read_queues,
        placeholder="orders:*",
        autocapitalize="off",
    )
    days = forms.IntegerField(
        label=noted(_("Days until it expires"), _("empty: never")),
        required=False,
        min_value=1,
        max_value=token_lifecycle.MOST_DAYS,
        initial=90,
    )
    rate = forms.IntegerField(
        label=noted(_("Requests a second"), _("empty: no limit of its own")),
        required=False,
        min_value=1,
        max_value=token_lifecycle.MOST_RATE,
    )

    def __init__(self, *args: Any, of_admin: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not of_admin:
            keep_choices(self, "verbs", QUEUE_VERBS)
            self.fields["verbs"].initial = [Verb.READ.value]

    @property
    def asked(self) -> dict[str, Any]:
        """What the form asks for, as `tokens.create` takes it."""
        data = self.cleaned_data
        return {
            "verbs": [Verb(verb) for verb in data["verbs"]],
            "queues": data["queues"].split(),
            "days": data["days"],
            "rate": data["rate"],
        }
