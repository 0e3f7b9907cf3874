"""Forms about people: a name, a role for all queues, and roles for some queues by glob."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.accounts.name_patterns import BadGlob, check_glob
from pqadmin.accounts.rights import GRANTABLE, Role
from pqadmin.display.errors import said
from queues.errors import BadName

_MAX_NAME, _MAX_GLOB = 1_000, 20_000
ROLES = [(role.value, role.label) for role in Role]


class RoleForm(forms.Form):
    """A role on all queues. Whoever makes an admin types the person's name."""

    role = forms.ChoiceField(choices=ROLES)
    confirm = forms.CharField(required=False, strip=True, max_length=_MAX_NAME)

    def __init__(self, *args: Any, name: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name = name

    def clean(self) -> dict[str, Any]:
        """Ask for the name of whoever becomes an admin."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("role") == Role.ADMIN and cleaned.get("confirm") != self._name:
            self.add_error("confirm", _("An admin may do everything: type the person's name exactly as shown."))
        return cleaned


class GrantForm(forms.Form):
    """A role on the queues that a glob matches."""

    glob = forms.CharField(
        strip=True,
        max_length=_MAX_GLOB,
        error_messages={"required": gettext_lazy("Say which queues: a name, or a pattern such as orders:*.")},
    )
    role = forms.ChoiceField(choices=[(role.value, role.label) for role in GRANTABLE])

    def clean_glob(self) -> str:
        """Check the glob by its own rules and by those for names."""
        return _checked(self.cleaned_data["glob"])


class PersonForm(forms.Form):
    """A new person."""

    name = forms.CharField(
        strip=True, max_length=_MAX_NAME, error_messages={"required": gettext_lazy("A person needs a name.")}
    )
    role = forms.ChoiceField(choices=ROLES)
    glob = forms.CharField(required=False, strip=True, max_length=_MAX_GLOB)
    glob_role = forms.ChoiceField(required=False, choices=[(role.value, role.label) for role in GRANTABLE])

    def clean_glob(self) -> str:
        """Check the glob, if there is one."""
        text = str(self.cleaned_data["glob"])
        return _checked(text) if text else ""

    @property
    def grants(self) -> dict[str, Role]:
        """The first grant, if one was typed."""
        glob = self.cleaned_data["glob"]
        return {glob: Role(self.cleaned_data["glob_role"] or Role.VIEWER)} if glob else {}


def _checked(text: str) -> str:
    try:
        return check_glob(text)
    except (BadGlob, BadName) as error:
        raise forms.ValidationError(said(error)) from None
