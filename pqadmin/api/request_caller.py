"""The caller of a request of the API: by the token of the Authorization header, or the session of the cookie."""

from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from pqadmin.accounts.authentication import Badge, Credentials, Refusal, Unauthenticated, digest
from pqadmin.accounts.caller import Caller
from pqadmin.accounts.roles import SAFE
from pqadmin.api import limits
from pqadmin.api.request import ApiRequest

#: The process's one.
credentials = Credentials()
#: The key in a request's META for its badge.
_BADGE = "pqadmin.badge"


class CsrfRefused(PermissionDenied):
    """A write of a session without the token of the site's forms (`X-CSRFToken`), or from another origin."""


async def caller_of(request: ApiRequest) -> Caller:
    """Return the caller, and count the request.

    Raises `Unauthenticated`, `CsrfRefused`, the problem of too many requests, or a DatabaseError.
    """
    if mark_token(request):
        caller = await caller_now(request)
        count(request, caller)
        return caller
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    if not key:
        raise Unauthenticated(Refusal.MISSING)
    request.META[_BADGE] = Badge(session=key)
    caller = await caller_now(request)
    if request.method not in SAFE:
        _check_csrf(request)
    return caller


def mark_token(request: ApiRequest) -> bool:
    """Note the badge of a request with a token, and return whether it has one."""
    scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":  # another scheme is that of a proxy, perhaps
        return False
    request.META[_BADGE] = Badge(token=digest(secret.strip()))
    return True


def count(request: ApiRequest, caller: Caller) -> None:
    """Count a request of a token, and record its use; raises the problem of too many requests."""
    limits.count(request, caller)
    credentials.record_use(caller, str(request.META.get("REMOTE_ADDR", "")))


async def caller_now(request: ApiRequest) -> Caller:
    """Return the caller of an authenticated request with the rights that hold now; raises `Unauthenticated`."""
    return await credentials.caller(request.META[_BADGE])


def caller_in_thread_now(request: ApiRequest) -> Caller:
    """Return what `caller_now` returns, in a thread."""
    return credentials.caller_in_thread(request.META[_BADGE])


def _unused(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def _check_csrf(request: ApiRequest) -> None:
    _csrf_check.process_request(request)
    why = _csrf_check.process_view(request, _unused, (), {})
    if why is not None:
        raise CsrfRefused(str(why))


class _CsrfCheck(CsrfViewMiddleware):
    """Django's check, with its reason instead of its page."""

    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


_csrf_check = _CsrfCheck(_unused)
