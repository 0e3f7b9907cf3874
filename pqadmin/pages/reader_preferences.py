"""Preferences of a reader, kept in cookies that a form without a script sets: language, theme, zone, height of rows."""

from collections.abc import Callable
from zoneinfo import ZoneInfo

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from pqadmin.accounts.access import open_without_role
from pqadmin.display.addresses import leave_for_next
from pqadmin.display.moments import zone_names
from pqadmin.pages import toasts

THEME, THEMES = "pqadmin_theme", ("light", "dark")
TIME_ZONE, UTC_NAME = "pqadmin_time_zone", "UTC"
#: The browser's own time zone, as a script of ours has written it down.
BROWSER_ZONE = "pqadmin_browser_zone"
ROWS, COMPACT = "pqadmin_rows", "compact"
_YEAR = 365 * 24 * 3600

#: Remember the language and go back to the page it was chosen on; without a choice the browser's counts.
choose_language = login_not_required(require_POST(set_language))


def theme(request: HttpRequest | None) -> str:
    """Return light, dark, or nothing for the system's own."""
    chosen = "" if request is None else request.COOKIES.get(THEME, "")
    return chosen if chosen in THEMES else ""


def time_zone(request: HttpRequest | None) -> str:
    """Return the name of the reader's time zone: the chosen one, else the browser's, else UTC."""
    told = () if request is None else (request.COOKIES.get(cookie, "") for cookie in (TIME_ZONE, BROWSER_ZONE))
    return next((name for name in told if name in zone_names()), UTC_NAME)


def compact(request: HttpRequest) -> bool:
    """Return whether the reader wants low rows on the overview."""
    return request.COOKIES.get(ROWS, "") == COMPACT


def follow_reader(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return the middleware that writes the moments of every page in its reader's time zone."""

    def follow(request: HttpRequest) -> HttpResponseBase:
        with timezone.override(ZoneInfo(time_zone(request))):
            return get_response(request)

    return follow


@open_without_role
@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Remember the theme and go back to the page it was chosen on."""
    chosen = request.POST.get("theme", "")
    return _remember(request, THEME, chosen if chosen in THEMES else "")


@open_without_role
@require_POST
def choose_rows(request: HttpRequest) -> HttpResponse:
    """Remember the height of rows and go back to the page it was chosen on."""
    return _remember(request, ROWS, COMPACT if request.POST.get("rows") == COMPACT else "")


@open_without_role
@require_POST
def choose_time_zone(request: HttpRequest) -> HttpResponse:
    """Remember the time zone and go back to the page it was chosen on."""
    name = request.POST.get("zone", "").strip()
    if name and name not in zone_names():
        toasts.failed(request, _("No time zone has this name. Give one such as Europe/Berlin, or UTC."))
        return leave_for_next(request)
    return _remember(request, TIME_ZONE, name)


def _remember(request: HttpRequest, cookie: str, chosen: str) -> HttpResponse:
    """Keep a choice, or forget it, and go back."""
    response = leave_for_next(request)
    if chosen:
        response.set_cookie(cookie, chosen, max_age=_YEAR, samesite="Lax", httponly=True, secure=request.is_secure())
    else:
        response.delete_cookie(cookie, samesite="Lax")
    return response
