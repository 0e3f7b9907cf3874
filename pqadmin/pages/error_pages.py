"""Pages for what went wrong: styled when they can be, plain when even that fails, never a traceback."""

import logging
import sys
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.forms import UsernameField
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.urls import reverse
from django.utils.html import escape
from django.utils.translation import gettext as _

from pqadmin.accounts.arming import NotArmed
from pqadmin.accounts.roles import RightMissing
from pqadmin.accounts.throttle import LONGEST_NAME
from pqadmin.display.addresses import leave_for_next
from pqadmin.display.errors import said
from queues.errors import KeyTooLarge, OutcomeUnknown, StoreError, TransactionTooLarge, ValueTooLarge

log = logging.getLogger(__name__)

RETRY_AFTER = 5  # seconds
#: The request asks for more than any store takes: it will not be better later.
_TOO_LARGE = (KeyTooLarge, ValueTooLarge, TransactionTooLarge)
#: Mistakes of the site's own, not outages.
_MISTAKES = (IntegrityError, DataError, ProgrammingError)


def page(
    request: HttpRequest | None,
    status: int,
    *,
    title: str,
    context: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Return the page for `status`; without `request` it is made without context processors."""
    values = {"status": status, "title": title, **(context or {})}
    for source in (request, None):
        try:
            content = loader.render_to_string(f"{status}.html", values, request=source)
            break
        except Exception:  # the page about a failure must not fail
            log.exception("page %s could not be made with%s", status, "out a request" if source is None else " one")
    else:
        return plain(status, title, headers)
    return HttpResponse(content, status=status, headers=dict(headers or {}))


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 400."""
    return page(None, 400, title=_("Bad request"))


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 403 and say which role is needed, if it is a matter of role."""
    missing = exception if isinstance(exception, RightMissing) else None
    context = {
        "needed": missing.right.role if missing else None,
        "actual": missing.role if missing else None,
        "queue": missing.queue if missing else None,
    }
    if isinstance(exception, NotArmed):
        from pqadmin.pages.arming_views import refused  # it needs the URLconf, which names this module

        return page(request, 403, title=_("Read-only"), context={**context, "unarmed": True, **refused(request)})
    return page(request, 403, title=_("Not allowed"), context=context)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form that does not come from a page of this site or is too old."""
    if not request.is_secure() and request.headers.get("Origin") == f"https://{request.get_host()}":
        return page(request, 403, title=_("The form was not accepted"), context={"undeclared": True})
    if request.path == reverse("accounts:login") and request.user.is_authenticated:
        if _typed_name(request) == request.user.get_username():
            return leave_for_next(request)  # another tab has logged in since
        return page(request, 403, title=_("Another user is signed in"), context={"other_user": True})
    return page(request, 403, title=_("The form has expired"), context={"expired": True})


def _typed_name(request: HttpRequest) -> str:
    """Return the name in a sent login form, as the login compares it."""
    return str(UsernameField(max_length=LONGEST_NAME).to_python(request.POST.get("username", "")))


def page_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 404."""
    return page(request, 404, title=_("Not found"))


def not_allowed(request: HttpRequest, allow: str) -> HttpResponse:
    """Answer 405 to a request with the wrong method."""
    return page(request, 405, title=_("Method not allowed"), context={"allow": allow}, headers={"Allow": allow})


def outage(request: HttpRequest, exception: BaseException | None) -> HttpResponse | None:
    """Answer 503 to an error of the store or the database. None if the exception is no outage."""
    if isinstance(exception, _TOO_LARGE):
        return bad_request(request)
    if isinstance(exception, StoreError):
        title, reason = _("The queues cannot be reached"), said(exception)
    elif isinstance(exception, DatabaseError | InterfaceError) and not isinstance(exception, _MISTAKES):
        title = _("The site's tables cannot be reached")
        reason = _("People and sessions are in tables that cannot be read or written now. The queues are elsewhere.")
    else:
        return None
    log.warning("no answer to %s: %s: %s", request.path, type(exception).__name__, exception)
    unknown = isinstance(exception, OutcomeUnknown)
    context = {"reason": reason, "unknown": unknown, "retry_after": RETRY_AFTER}
    return page(request, 503, title=title, context=context, headers={"Retry-After": str(RETRY_AFTER)})


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 without relying on anything that may be what failed. 503 if it was an outage.

    An outage comes here when it struck outside a view: while the session was read or saved.
    """
    return outage(request, sys.exc_info()[1]) or page(None, 500, title=_("Something went wrong"))


def plain(status: int, title: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return a page that needs no template."""
    content = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)} · pqadmin</title>'
        f'<h1>{escape(title)}</h1><p>{status}</p><p><a href="/">pqadmin</a></p></html>'
    )
    return HttpResponse(content, status=status, headers=dict(headers or {}))
