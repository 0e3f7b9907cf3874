"""The chosen theme: a cookie, set by a form that needs no script."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from pqadmin.accounts.access import open_without_role
from pqadmin.display.addresses import leave_for_next

COOKIE = "pqadmin_theme"
THEMES = ("light", "dark")
_YEAR = 365 * 24 * 3600


def chosen(request: HttpRequest | None) -> str:
    """Return light, dark, or nothing for the system's own."""
    theme = "" if request is None else request.COOKIES.get(COOKIE, "")
    return theme if theme in THEMES else ""


@open_without_role
@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Remember the theme and go back to the page it was chosen on."""
    response = leave_for_next(request)
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie(COOKIE, theme, max_age=_YEAR, samesite="Lax", httponly=True, secure=request.is_secure())
    else:
        response.delete_cookie(COOKIE, samesite="Lax")
    return response
