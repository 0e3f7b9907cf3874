"""People: who is there, what each may do on which queues, and how an admin changes that; and what oneself may do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from pqadmin.accounts.access import open_without_role
from pqadmin.accounts.models import Grant
from pqadmin.accounts.rights import GRANTABLE, Right, Role
from pqadmin.accounts.roles import require
from pqadmin.accounts.scope import Scope, role_given, scope_of
from pqadmin.display.addresses import leave, queue_url
from pqadmin.pages import act_view, once, toasts
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.people import deeds
from pqadmin.people.forms import GrantForm, PersonForm, RoleForm
from pqadmin.store import get_store
from queues.errors import QueueError, StoreError, display_name

PAGE = 50
#: Names of queues that are shown of a glob, and of one's own.
_SHOWN, _OWN = 12, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The queues that a glob matches now."""

    glob: str
    count: int
    #: (name as shown, address) of the first ones.
    first: Sequence[tuple[str, str]]

    @property
    def more(self) -> int:
        """How many more there are."""
        return self.count - len(self.first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A person in the list."""

    user: User
    role: Role
    grants: Sequence[Grant]


@require_safe
@require(Right.ADMIN)
def people(request: HttpRequest) -> HttpResponse:
    """List people by name, with their roles, grants and last sign-in."""
    asked, after = request.GET.get("q", "")[:150].strip(), request.GET.get("after", "")[:150]
    found = User.objects.order_by("username").prefetch_related("groups", "grants")
    if asked:
        found = found.filter(username__icontains=asked)
    if after:
        found = found.filter(username__gt=after)
    shown = list(found[: PAGE + 1])
    more, shown = len(shown) > PAGE, shown[:PAGE]
    kept = {"q": asked} if asked else {}
    context = {
        "section": "people",
        "asked": asked,
        "lines": [
            Line(user=user, role=role_given(user), grants=sorted(user.grants.all(), key=lambda each: each.glob))
            for user in shown
        ],
        "next_url": "?" + urlencode({**kept, "after": shown[-1].username}) if more else "",
        "in_middle": bool(after),
        "first_url": "?" + urlencode(kept),
    }
    return render(request, "people/people.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ADMIN, harmless=lambda request: "preview" in request.POST)
def create(request: HttpRequest) -> HttpResponse:
    """Create a person and show the password, once."""
    form = PersonForm(request.POST) if request.method == "POST" else None
    context = {
        "section": "people",
        "form": form,
        "roles": _choices(),
        "form_number": once.number(request, "create-person"),
        "matching": _matching(form.data.get("glob", "")) if form is not None else None,
    }
    if form is None:
        return render(request, "people/new.html", context)
    valid = form.is_valid()
    if "preview" in request.POST:
        return render(request, "people/new.html", context)
    if not valid:
        return act_view.answer(request, "people/new.html", context, refusal=act_view.invalid(form))
    data, made = form.cleaned_data, list[tuple[User, str]]()

    def act() -> str:
        made.append(deeds.create(data["name"], Role(data["role"]), form.grants, by=_by(request), now=datetime.now(UTC)))
        return _url(made[0][0])

    refused = _once(request, "create-person", act)
    if isinstance(refused, HttpResponse):
        return refused
    if refused is not None:
        act_view.blame(form, refused)
        return act_view.answer(request, "people/new.html", context, refusal=refused)
    user, password = made[0]
    return render(request, "people/password.html", {"section": "people", "person": user, "password": password})


@never_cache
@require_http_methods(["GET", "HEAD"])
@require(Right.ADMIN)
def person(request: HttpRequest, key: int) -> HttpResponse:
    """Show a person and what can be changed; `glob` in the address shows which queues that matches."""
    return render(request, "people/person.html", _about(request, _find(key), glob=request.GET.get("glob", "")))


@require_POST
@require(Right.ADMIN)
def role(request: HttpRequest, key: int) -> HttpResponse:
    """Change a person's role on all queues."""
    user = _find(key)
    form = RoleForm(request.POST, name=user.username)
    if not form.is_valid():
        return _again(request, user, act_view.invalid(form), role_form=form)
    given = Role(form.cleaned_data["role"])
    refused = _once(request, f"role:{key}", lambda: deeds.change_role(user, given, by=_by(request)), user)
    if refused is not None:
        return _again(request, user, refused, role_form=form)
    words = _("%(name)s has the role %(role)s on all queues now.")
    return _told(request, user, words % {"name": user.username, "role": given.label})


@require_POST
@require(Right.ADMIN)
def add_grant(request: HttpRequest, key: int) -> HttpResponse:
    """Give a person a role on the queues that a glob matches."""
    user = _find(key)
    form = GrantForm(request.POST)
    if not form.is_valid():
        return _again(request, user, act_view.invalid(form), grant_form=form)
    glob, given = form.cleaned_data["glob"], Role(form.cleaned_data["role"])
    now = datetime.now(UTC)
    refused = _once(request, f"grant:{key}", lambda: deeds.add_grant(user, glob, given, by=_by(request), now=now), user)
    if refused is not None:
        return _again(request, user, refused, grant_form=form)
    words = _("%(name)s has the role %(role)s on %(glob)s now.")
    return _told(request, user, words % {"name": user.username, "role": given.label, "glob": glob})


@require_POST
@require(Right.ADMIN)
def remove_grant(request: HttpRequest, key: int, grant: int) -> HttpResponse:
    """Take a grant away from a person."""
    user = _find(key)
    taken: list[str] = []
    refused = _once(
        request,
        f"remove-grant:{grant}",
        lambda: taken.append(deeds.remove_grant(user, grant, by=_by(request))),
        user,
    )
    if refused is not None:
        return _again(request, user, refused)
    return _told(request, user, _("The grant on %(glob)s is taken away.") % {"glob": taken[0]})


@require_POST
@require(Right.ADMIN)
def activate(request: HttpRequest, key: int) -> HttpResponse:
    """Let a person sign in, or no longer."""
    user, active = _find(key), request.POST.get("active") == "yes"
    refused = _once(request, f"active:{key}", lambda: deeds.set_active(user, active, by=_by(request)), user)
    if refused is not None:
        return _again(request, user, refused)
    words = _("%(name)s may sign in again.") if active else _("%(name)s is signed out and may not sign in.")
    return _told(request, user, words % {"name": user.username})


@never_cache
@require_POST
@require(Right.ADMIN)
def password(request: HttpRequest, key: int) -> HttpResponse:
    """Give a person a new password and show it, once."""
    user, made = _find(key), list[str]()
    refused = _once(request, f"password:{key}", lambda: made.append(deeds.reset_password(user, by=_by(request))), user)
    if refused is not None:
        return _again(request, user, refused)
    return render(request, "people/password.html", {"section": "people", "person": user, "password": made[0]})


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
        "grants": [(role, _matching(glob, names)) for glob, role in scope.grants],
        "queues": [(display_name(name), queue_url(name), role) for name, role in seen[:_OWN]],
        "count": len(seen),
        "unlisted": max(0, len(seen) - _OWN),
        "may": _may(scope),
    }
    return render(request, "people/me.html", context)


def _may(scope: Scope) -> list[tuple[str, bool]]:
    return [
        (_("look at queues, items, the audit, the trash and jobs"), scope.anywhere(Right.READ)),
        (_("push, pop, move, change and delete items; pause, change and delete queues"), scope.anywhere(Right.ACT)),
        (_("attach queues, make boards, and change what people may do"), scope.role.has(Right.ADMIN)),
    ]


def _find(key: int) -> User:
    found = User.objects.filter(pk=key).first()
    if found is None:
        raise Http404
    return found


def _url(user: User) -> str:
    return reverse("people:person", args=[user.pk])


def _by(request: HttpRequest) -> str:
    return request.user.get_username()


def _once(
    request: HttpRequest, purpose: str, act: Callable[[], str | None], user: User | None = None
) -> Refusal | HttpResponse | None:
    """Do a change once; return why it was refused, or the answer to a form that was sent before.

    A second sending leads to what `act` returns, or to the page of the user.
    """
    try:
        with once.once(request, purpose) as sending:
            sending.answer = act() or ("" if user is None else _url(user))
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, reverse("people:people"))
    except once.FormRefused:
        return act_view.stale_form()
    except deeds.PersonError as error:
        title = _("This cannot be done")
        return Refusal(title=title, text=str(error), advice="", status=422 if error.field else 409, field=error.field)
    except (QueueError, StoreError) as error:
        return explain(error)
    return None


def _again(
    request: HttpRequest,
    user: User,
    refused: Refusal | HttpResponse,
    *,
    role_form: RoleForm | None = None,
    grant_form: GrantForm | None = None,
) -> HttpResponse:
    if isinstance(refused, HttpResponse):
        return refused
    for form in (role_form, grant_form):
        if form is not None:
            act_view.blame(form, refused)
    context = _about(request, _find(user.pk), role_form=role_form, grant_form=grant_form)
    return act_view.answer(request, "people/person.html", context, refusal=refused)


def _told(request: HttpRequest, user: User, words: str) -> HttpResponse:
    toasts.done(request, words)
    return leave(_url(user))


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
    trial = GrantForm({"glob": glob, "role": request.GET.get("role", Role.VIEWER)}) if glob else grant_form
    grants = list(user.grants.order_by("glob"))
    key = user.pk
    return {
        "section": "people",
        "person": user,
        "person_role": role_given(user),
        "myself": user.pk == request.user.pk,
        "roles": _choices(),
        "grantable": [(role.value, role.label) for role in GRANTABLE],
        "grants": [
            {
                "grant": each,
                "role": Role(each.role).label,
                "matching": _matching(each.glob, names),
                "number": once.number(request, f"remove-grant:{each.pk}"),
            }
            for each in grants
        ],
        "role_form": role_form,
        "grant_form": trial,
        "typed_glob": typed,
        "typed_role": (grant_form.data.get("role") if grant_form is not None else request.GET.get("role")) or "viewer",
        "matching": _matching(typed, names) if typed and (trial is None or trial.is_valid()) else None,
        "numbers": {
            "role": once.number(request, f"role:{key}"),
            "grant": once.number(request, f"grant:{key}"),
            "active": once.number(request, f"active:{key}"),
            "password": once.number(request, f"password:{key}"),
        },
        "audit_url": f"{reverse('dashboard:audit')}?{urlencode({'by': user.username})}",
        "now": datetime.now(UTC),
    }


def _choices() -> list[tuple[str, Any, str]]:
    return [
        (Role.NONE.value, Role.NONE.label, _("sees and does nothing, but for what is granted below")),
        (Role.VIEWER.value, Role.VIEWER.label, _("sees every queue, changes nothing")),
        (Role.OPERATOR.value, Role.OPERATOR.label, _("also acts on every queue")),
        (Role.ADMIN.value, Role.ADMIN.label, _("also attaches queues, makes boards and changes people")),
    ]


def _matching(glob: str, names: Iterable[str] | None = None) -> Matching | None:
    glob = glob.strip()
    if not glob or len(glob) > 300:
        return None
    found = Scope.of_globs([glob]).of_those(get_store().directory() if names is None else names)
    return Matching(
        glob=glob, count=len(found), first=[(display_name(name), queue_url(name)) for name in found[:_SHOWN]]
    )
