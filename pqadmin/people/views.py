"""People: their roles and grants, changed by admins, and the page of one's own rights."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from pqadmin.accounts.access import open_without_role
from pqadmin.accounts.rights import Right, Role
from pqadmin.accounts.roles import require
from pqadmin.accounts.scope import role_given, scope_of
from pqadmin.display.addresses import queue_url
from pqadmin.pages import form_idempotency, toasts
from pqadmin.pages.action_view import ActionView, purpose_of
from pqadmin.pages.refusals import NotPossible
from pqadmin.people import person_changes, person_list
from pqadmin.people.forms import GrantForm, PersonForm, RoleForm
from pqadmin.people.matching_queues import matching
from pqadmin.store import get_store
from queues.errors import display_name

PAGE = 50
#: Names that are shown of the queues that one sees.
_OWN = 200


@require_safe
@require(Right.ADMIN)
def people(request: HttpRequest) -> HttpResponse:
    """List people by name, with their roles, grants and last sign-in."""
    asked, after = request.GET.get("q", "")[:150].strip(), request.GET.get("after", "")[:150]
    shown, following = person_list.page(asked, after=after, limit=PAGE)
    kept = {"q": asked} if asked else {}
    context = {
        "section": "people",
        "asked": asked,
        "lines": [
            {"user": user, "role": role_given(user), "grants": sorted(user.grants.all(), key=lambda each: each.glob)}
            for user in shown
        ],
        "next_url": "?" + urlencode({**kept, "after": following}) if following else "",
        "in_middle": bool(after),
        "first_url": "?" + urlencode(kept),
    }
    return render(request, "people/people.html", context)


@method_decorator(never_cache, name="dispatch")
class CreateView(ActionView):
    """Creates a person and shows the password, once."""

    right, section = Right.ADMIN, "people"
    action, template_name = "create-person", "people/new.html"
    form_class = PersonForm
    preview_button, home_page = "preview", "people:people"

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        return super().get_context_data(matching=matching(self.request.POST.get("glob", "")), **more)

    def answer_of(self, result: Any) -> str:
        """A second sending leads to the person in the list."""
        return f"{self.home}?{urlencode({'q': self.request.POST.get('name', '')})}"

    def perform(self, form: PersonForm) -> HttpResponse:
        """Create the person."""
        data = form.cleaned_data
        user, password = person_changes.create(
            data["name"], Role(data["role"]), form.grants, by=self.author, now=datetime.now(UTC)
        )
        return _show_password(self.request, user, password)


@never_cache
@require_http_methods(["GET", "HEAD"])
@require(Right.ADMIN)
def person(request: HttpRequest, key: int) -> HttpResponse:
    """Show a person and what can be changed; `glob` in the address shows which queues that matches."""
    return render(
        request,
        "people/person.html",
        _about(request, get_object_or_404(User, pk=key), glob=request.GET.get("glob", "")),
    )


class PersonActionView(ActionView):
    """A change of the person that the address names. A refusal is shown on the person's page."""

    http_method_names = ["post"]
    right, template_name, subject_argument = Right.ADMIN, "people/person.html", "key"
    #: The name of the form on the person's page.
    form_name = ""
    person: User

    @property
    def home(self) -> str:
        """The person's page."""
        return reverse("people:person", args=[self.subject])

    def load(self) -> None:
        """Read the person."""
        self.person = get_object_or_404(User, pk=self.kwargs["key"])

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the person's page shows."""
        context = super().get_context_data(**more)
        forms = {self.form_name: context["form"]} if self.form_name else {}
        return context | _about(self.request, self.person, **forms)

    def perform(self, form: Any) -> str | HttpResponse:
        """Change the person and say so."""
        toasts.done(self.request, self.change(form))
        return self.home

    def change(self, form: Any) -> str:
        """Change the person and return what was done in words."""
        raise NotImplementedError


class RoleView(PersonActionView):
    """Changes a person's role on all queues."""

    action, form_name, form_class = "role", "role_form", RoleForm

    def get_form_kwargs(self) -> dict[str, Any]:
        """Ask for the person's name before an admin is made."""
        return {**super().get_form_kwargs(), "name": self.person.username}

    def change(self, form: RoleForm) -> str:
        """Give the role."""
        given = Role(form.cleaned_data["role"])
        if not person_changes.change_role(self.person, given, by=self.author):
            raise NotPossible(_("That is the role already: nothing was changed."), "role")
        words = _("%(name)s has the role %(role)s on all queues now.")
        return words % {"name": self.person.username, "role": given.label}


class AddGrantView(PersonActionView):
    """Gives a person a role on the queues that a glob matches."""

    action, form_name, form_class = "grant", "grant_form", GrantForm

    def change(self, form: GrantForm) -> str:
        """Add the grant."""
        glob, given = form.cleaned_data["glob"], Role(form.cleaned_data["role"])
        if not person_changes.add_grant(self.person, glob, given, by=self.author, now=datetime.now(UTC)):
            raise NotPossible(_("This grant is there already: nothing was changed."), "glob")
        words = _("%(name)s has the role %(role)s on %(glob)s now.")
        return words % {"name": self.person.username, "role": given.label, "glob": glob}


class RemoveGrantView(PersonActionView):
    """Takes a grant away from a person."""

    action = "remove-grant"

    @property
    def purpose(self) -> str:
        """What a sent form was made for."""
        return purpose_of(self.action, str(self.kwargs["grant"]))

    def change(self, form: Any) -> str:
        """Remove the grant."""
        glob = person_changes.remove_grant(self.person, self.kwargs["grant"], by=self.author)
        return _("The grant on %(glob)s is taken away.") % {"glob": glob}


class ActivateView(PersonActionView):
    """Lets a person sign in, or no longer."""

    action = "active"

    def change(self, form: Any) -> str:
        """Activate or deactivate the person."""
        active = self.request.POST.get("active") == "yes"
        if not person_changes.set_active(self.person, active, by=self.author):
            raise NotPossible(_("That is so already: nothing was changed."))
        words = _("%(name)s may sign in again.") if active else _("%(name)s is signed out and may not sign in.")
        return words % {"name": self.person.username}


@method_decorator(never_cache, name="dispatch")
class PasswordView(PersonActionView):
    """Gives a person a new password and shows it, once."""

    action = "password"

    def perform(self, form: Any) -> HttpResponse:
        """Reset the password; a second sending leads to the person's page."""
        password = person_changes.reset_password(self.person, by=self.author)
        return _show_password(self.request, self.person, password)


def _show_password(request: HttpRequest, user: User, password: str) -> HttpResponse:
    return render(request, "people/password.html", {"section": "people", "person": user, "password": password})


@open_without_role
@require_safe
def me(request: HttpRequest) -> HttpResponse:
    """Show what one may do oneself, and on which queues."""
    scope = scope_of(request.user)
    names = list(get_store().directory()) if scope.anywhere(Right.READ) else []
    seen = [(name, scope.role_on(name)) for name in scope.of_those(names)]
    context = {
        "section": "me",
        "scope": scope,
        "grants": [(role, matching(glob, names=names)) for glob, role in scope.grants],
        "queues": [(display_name(name), queue_url(name), role) for name, role in seen[:_OWN]],
        "count": len(seen),
        "unlisted": max(0, len(seen) - _OWN),
        "may": [
            (_("look at queues, items, the audit, the trash and jobs"), scope.anywhere(Right.READ)),
            (_("push, pop, move, change and delete items; pause, change and delete queues"), scope.anywhere(Right.ACT)),
            (_("attach queues, make boards, and change what people may do"), scope.role.has(Right.ADMIN)),
        ],
    }
    return render(request, "people/me.html", context)


def _about(
    request: HttpRequest,
    user: User,
    *,
    role_form: RoleForm | None = None,
    grant_form: GrantForm | None = None,
    glob: str = "",
) -> dict[str, Any]:
    names = list(get_store().directory())
    typed = glob if grant_form is None else str(grant_form.data.get("glob", ""))
    if grant_form is None:
        trial = {"glob": glob, "role": request.GET.get("role", Role.VIEWER)}
        grant_form = GrantForm(trial if glob else None, auto_id="grant-%s")
    role, key = role_given(user), user.pk
    return {
        "section": "people",
        "person": user,
        "person_role": role,
        "myself": user.pk == request.user.pk,
        "grants": [
            {
                "grant": each,
                "role": Role(each.role).label,
                "matching": matching(each.glob, names=names),
                "hidden": {
                    form_idempotency.FIELD: form_idempotency.number(request, purpose_of("remove-grant", str(each.pk)))
                },
            }
            for each in user.grants.order_by("glob")
        ],
        "role_form": role_form or RoleForm(name=user.username, initial={"role": role.value}, auto_id="role-%s"),
        "grant_form": grant_form,
        "matching": matching(typed, names=names) if typed and grant_form.is_valid() else None,
        "numbers": {
            action: {form_idempotency.FIELD: form_idempotency.number(request, purpose_of(action, str(key)))}
            for action in ("role", "grant", "active", "password")
        },
        "tokens": user.tokens.filter(revoked_at=None).count(),
        "tokens_url": f"{reverse('people:tokens')}?{urlencode({'q': user.username})}",
        "audit_url": f"{reverse('dashboard:audit')}?{urlencode({'by': user.username})}",
        "now": datetime.now(UTC),
    }
