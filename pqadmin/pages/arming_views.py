"""Arming: opening the window for writes, with what was typed into a refused form kept, and shutting it."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from pqadmin.accounts import arming
from pqadmin.accounts.roles import Right, require
from pqadmin.display.addresses import leave
from pqadmin.limits.body_size import takes_uploads
from pqadmin.pages import toasts
from pqadmin.pages.action_view import answer
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.pages.templatetags.dashboard import environment_kind
from pqadmin.site_audit import note
from pqadmin.store import store_now
from queues.errors import StoreError

#: The fields of a refused form ride under this prefix, so that they do not meet the fields of arming.
KEPT = "kept:"


@takes_uploads  # the fields of a refused form, which may be a long list of items
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT, harmless=lambda _request: True)
def arm(request: HttpRequest) -> HttpResponse:
    """Open the window for writes; in production once the environment's name was typed."""
    if not arming.minutes():
        home = reverse("dashboard:overview")
        return leave(home) if request.method == "POST" else redirect(home)
    to = _local(request, request.POST.get("to") or request.GET.get("next", ""))
    kept = [
        (name.removeprefix(KEPT), value)
        for name, values in request.POST.lists()
        for value in values
        if name.startswith(KEPT)
    ]
    if request.method != "POST":
        return render(request, "dashboard/arm.html", about(request, to=to))
    if asks_for_name() and request.POST.get("environment", "").strip() != settings.PQADMIN_ENVIRONMENT:
        refusal = Refusal(
            title=_("The name does not match"), text=_("Type it exactly as shown."), advice="", status=422
        )
        return answer(request, "dashboard/arm.html", about(request, to=to, kept=kept), refusal=refusal)
    try:
        note(request.user.get_username(), "arm", after={"minutes": arming.minutes()})
    except StoreError as error:
        return answer(request, "dashboard/arm.html", about(request, to=to, kept=kept), refusal=explain(error))
    until = arming.arm(request, store_now())
    if kept and to:
        return render(request, "dashboard/armed.html", {"to": to, "kept": kept, "until": until})
    words = ngettext(
        "Armed: writes are allowed for a minute.", "Armed: writes are allowed for %(n)s minutes.", arming.minutes()
    )
    toasts.done(request, words % {"n": arming.minutes()})
    return leave(to or reverse("dashboard:overview"))


@require_POST
@require(Right.ACT, harmless=lambda _request: True)
def disarm(request: HttpRequest) -> HttpResponse:
    """Shut the window for writes."""
    to = _local(request, request.POST.get("to", "")) or reverse("dashboard:overview")
    if arming.window(request).until is not None:
        arming.disarm(request)  # first, and whether that can be written down or not
        toasts.done(request, _("Disarmed: nothing can be changed until you arm again."))
        try:
            note(request.user.get_username(), "disarm")
        except StoreError as error:
            refusal = explain(error)
            toasts.failed(request, _("It is not in the audit.") + " " + refusal.text)
    return leave(to)


def asks_for_name() -> bool:
    """Say whether arming takes the typed name of the environment."""
    return environment_kind(settings.PQADMIN_ENVIRONMENT) == "production"


def about(request: HttpRequest, *, to: str, kept: list[tuple[str, str]] | None = None) -> dict[str, Any]:
    """Return what the page of arming shows."""
    return {
        "to": to,
        "kept": [(f"{KEPT}{name}", value) for name, value in kept or []],
        "minutes": arming.minutes(),
        "asks_for_name": asks_for_name(),
        "window": arming.window(request),
        "now": store_now(),
    }


def refused(request: HttpRequest) -> dict[str, Any]:
    """Return what the page about a refused write shows: how to arm, and all that was typed."""
    passwords = {name for name in request.POST if "password" in name}  # no page holds one, not even hidden
    kept = [
        (name, value)
        for name, values in request.POST.lists()
        for value in values
        if name != "csrfmiddlewaretoken" and name not in passwords
    ]
    files = [file.name for _name, files in request.FILES.lists() for file in files]
    return about(request, to=request.get_full_path(), kept=kept) | {"files": files, "passwords": passwords}


def _local(request: HttpRequest, address: str) -> str:
    """Return an address of this site, or nothing."""
    local = address.startswith("/") and url_has_allowed_host_and_scheme(address, None)
    return address if local else ""
