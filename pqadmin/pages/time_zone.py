"""The reader's time zone: a cookie, set by a form that needs no script. Without one, times are in UTC."""

from collections.abc import Callable
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pqadmin.accounts.access import open_without_role
from pqadmin.display.addresses import leave_for_next
from pqadmin.display.moments import zone_names
from pqadmin.pages import toasts

COOKIE = "pqadmin_time_zone"
UTC_NAME = "UTC"
_YEAR = 365 * 24 * 3600


def chosen(request: HttpRequest | None) -> str:
    """Return the name of the reader's time zone; UTC when none is chosen, or none of that name is known."""
    name = "" if request is None else request.COOKIES.get(COOKIE, "")
    return name if name in zone_names() else UTC_NAME


def follow_reader(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return the middleware that writes the moments of every page in its reader's time zone."""

    def follow(request: HttpRequest) -> HttpResponseBase:
        with timezone.override(ZoneInfo(chosen(request))):
            return get_response(request)

    return follow


@open_without_role
@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Remember the time zone and go back to the page it was chosen on."""
    response = leave_for_next(request)
    name = request.POST.get("zone", "").strip()
    if name in zone_names() - {UTC_NAME}:
        response.set_cookie(COOKIE, name, max_age=_YEAR, samesite="Lax", httponly=True, secure=request.is_secure())
    elif name in ("", UTC_NAME):
        response.delete_cookie(COOKIE, samesite="Lax")
    else:
        toasts.failed(request, _("No time zone has this name. Give one such as Europe/Berlin, or UTC."))
    return response
