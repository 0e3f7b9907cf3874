"""Forms about people: a name, a role for all queues, and roles for some queues by glob."""

from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from pqadmin.accounts.rights import GRANTABLE, Role
from pqadmin.display import format as write
from pqadmin.pages.fields import TypedField, choice, choices_field, select_field
from queues.admin import check_glob

_MAX_NAME, _MAX_GLOB = 1_000, 20_000


_ROLE_WORDS = [
    (Role.NONE, _("sees and does nothing, but for what is granted below")),
    (Role.VIEWER, _("sees every queue, changes nothing")),
    (Role.OPERATOR, _("also acts on every queue")),
    (Role.ADMIN, _("also attaches queues, makes boards and changes people")),
]


def _role_field(label: Any) -> forms.ChoiceField:
    options = [(role.value, choice(role.label, words)) for role, words in _ROLE_WORDS]
    field = choices_field(label, options, "four")
    field.initial = Role.VIEWER.value
    return field


def _glob_field(**options: Any) -> TypedField:
    options |= {"placeholder": "orders:*", "autocapitalize": "off"}
    return TypedField(_("Queues"), max_length=_MAX_GLOB, check=check_glob, **options)


class RoleForm(forms.Form):
    """A role on all queues. To make an admin, the person's name is typed."""

    role = _role_field(_("Role"))
    confirm = TypedField(max_length=_MAX_NAME, autocapitalize="off")

    def __init__(self, *args: Any, name: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name = name
        words = _("To make an admin, type the person's name:")
        self.fields["confirm"].label = format_html('{} <span class="all">{}</span>', words, write.visible(name))

    def clean(self) -> dict[str, Any]:
        """Ask for the name of a new admin."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("role") == Role.ADMIN and cleaned.get("confirm") != self._name:
            self.add_error("confirm", _("An admin may do everything: type the person's name exactly as shown."))
        return cleaned


class GrantForm(forms.Form):
    """A role on the queues that a glob matches."""

    glob = _glob_field(missing=_("Say which queues: a name, or a pattern such as orders:*."))
    role = forms.ChoiceField(label=_("Role there"), choices=[(role.value, role.label) for role in GRANTABLE])


class PersonForm(forms.Form):
    """A new person."""

    name = TypedField(
        _("Name to sign in with"),
        max_length=_MAX_NAME,
        missing=_("A person needs a name."),
        help_text=_("1 to 150 letters, digits and @ . + - _"),
        autocapitalize="off",
        autofocus=True,
    )
    role = _role_field(_("Role on all queues"))
    glob = _glob_field()
    glob_role = select_field(_("Role there"), [(role.value, role.label) for role in GRANTABLE])

    @property
    def grants(self) -> dict[str, Role]:
        """The first grant, if one was typed."""
        glob = self.cleaned_data["glob"]
        return {glob: Role(self.cleaned_data["glob_role"] or Role.VIEWER)} if glob else {}
