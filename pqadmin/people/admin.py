"""Django's admin of people and of the groups that are roles. The audit records its changes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model
from django.forms import ModelForm, model_to_dict
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _

from pqadmin.accounts.roles import GROUPS, SAFE, Role
from pqadmin.pages.refusals import NotPossible
from pqadmin.people.person_changes import end_sessions, has_admin_besides, held
from pqadmin.site_audit import note

admin.site.unregister(Group)
admin.site.unregister(User)

#: What a model's objects are called in the audit: in the names of the acts, and as what they are about.
_CALLED: dict[type[Model], str] = {User: "person", Group: "group"}
#: Names of permissions, of groups … that one record tells.
_TOLD = 50


class _Audited(admin.ModelAdmin):  # type: ignore[type-arg] # generic in the stubs only
    """Objects of which every change is audited."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Tell the audit what a form has made or changed."""
        super().save_related(request, form, formsets, change)
        _tell_saved(request, form, change=change)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Tell the audit which objects are about to be deleted."""
        _tell_deleted(request, queryset)
        return super().log_deletions(request, queryset)


#: Why the last admins stay admins.
_ADMIN_NEEDED = _("Without an admin no user could get a role. Make another one first.")


class _PersonForm(UserChangeForm):  # type: ignore[type-arg] # generic in the stubs only
    """A person as Django's admin changes one: as shown, and the last admin stays one."""

    #: Stands for what the page shows of the person.
    stamp = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["stamp"] = _stamp(self.instance)

    def clean(self) -> dict[str, Any]:
        """Refuse to undo what was changed meanwhile, and to leave the site without an admin."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("stamp") != self.initial["stamp"]:
            raise ValidationError(_("This person was changed meanwhile. Nothing was saved: load the page again."))
        role = cleaned.get("is_superuser") or any(group.name == Role.ADMIN for group in cleaned.get("groups", ()))
        if not (role and cleaned.get("is_active")) and not has_admin_besides([self.instance]):
            raise ValidationError(_ADMIN_NEEDED)
        return cleaned


def _stamp(user: User) -> str:
    """Return a text that is another one once the person is changed by another form."""
    fields = model_to_dict(user, exclude=["password", "last_login"])
    plain = {
        name: sorted(str(each.pk) for each in value) if isinstance(value, list) else str(value)
        for name, value in fields.items()
    }
    return salted_hmac("pqadmin.people.admin", repr(plain)).hexdigest()


@admin.register(User)
class PersonAdmin(_Audited, UserAdmin):  # type: ignore[type-arg] # generic in the stubs only
    """People; every change of one is audited, and the last admin stays one."""

    form = _PersonForm
    fieldsets = ((None, {"fields": ("username", "password", "stamp")}), *(UserAdmin.fieldsets or ())[1:])
    readonly_fields = ("last_login",)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> User | None:
        """Read a person; for a form that is sent as of now, and other changes wait until this one is made."""
        found: User | None = super().get_object(request, object_id, from_field)
        if found is None or request.method in SAFE:
            return found
        try:
            return held(found)
        except NotPossible:  # deleted meanwhile
            return None

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """End the sessions of a person that is reactivated."""
        super().save_model(request, obj, form, change)
        if change and obj.is_active and "is_active" in form.changed_data:
            end_sessions(obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Protect the last admins from being deleted."""
        found, counts, needed, protected = super().get_deleted_objects(objs, request)
        with transaction.atomic():  # a page that only asks is in none
            if not has_admin_besides(objs):
                protected = [*protected, str(_ADMIN_NEEDED)]
        return found, counts, needed, protected

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Tell the audit of a new password, or of none any more."""
        before = self.get_object(request, id)
        answer = super().user_change_password(request, id, form_url)
        after = self.get_object(request, id)
        if before is not None and after is not None and before.password != after.password:
            note(request.user.get_username(), "reset_password", after={"person": after.username})
        return answer


@admin.register(Group)
class RoleGroupAdmin(_Audited, GroupAdmin):
    """Groups; the three that are roles keep their names. Every change of one is audited."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete a role's group."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.name not in GROUPS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to rename a role's group."""
        return super().has_change_permission(request, obj) and (obj is None or obj.name not in GROUPS)


def _tell_saved(request: HttpRequest, form: "ModelForm[Any]", *, change: bool) -> None:
    """Note what a form has made or changed, by the names of its fields. Never a password."""
    called = _CALLED[type(form.instance)]
    fields = [name for name in form.changed_data if "password" not in name]
    if change and not fields:
        return
    after = {name: _plain(form.cleaned_data.get(name)) for name in fields}
    before = {name: _plain(form.initial.get(name)) for name in fields}
    note(
        request.user.get_username(),
        f"{'change' if change else 'create'}_{called}",
        before={called: before.get(_name_field(form.instance)) or str(form.instance), **before} if change else None,
        after={called: str(form.instance), **after},
    )


def _tell_deleted(request: HttpRequest, objects: Iterable[Model]) -> None:
    for each in objects:
        called = _CALLED[type(each)]
        before: Mapping[str, Any] = {called: str(each)}
        if isinstance(each, User):
            before = {**before, "groups": _plain(each.groups.all()), "is_superuser": each.is_superuser}
        note(request.user.get_username(), f"delete_{called}", before=before)


def _name_field(instance: Model) -> str:
    return "username" if isinstance(instance, User) else "name"


def _plain(value: Any) -> Any:
    """Return what a form holds as the audit keeps it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Iterable):
        names = sorted(map(str, value))
        return [*names[:_TOLD], *(["…"] if len(names) > _TOLD else [])]
    return str(value)
