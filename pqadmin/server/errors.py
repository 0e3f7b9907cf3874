"""Pages for what went wrong: styled when they can be, plain when even that fails, never a traceback."""

import logging
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.utils.html import escape
from django.utils.translation import gettext as _

from pqadmin.accounts.roles import RightMissing

log = logging.getLogger(__name__)


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
    context = {"needed": missing.right.role if missing else None, "actual": missing.role if missing else None}
    return page(request, 403, title=_("Not allowed"), context=context)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 to a form that does not come from a page of this site or is too old."""
    return page(request, 403, title=_("The form has expired"), context={"expired": True})


def page_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer 404."""
    return page(request, 404, title=_("Not found"))


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 without relying on anything that may be what failed."""
    return page(None, 500, title=_("Something went wrong"))


def plain(status: int, title: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return a page that needs no template."""
    content = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)} · pqadmin</title>'
        f'<h1>{escape(title)}</h1><p>{status}</p><p><a href="/">pqadmin</a></p></html>'
    )
    return HttpResponse(content, status=status, headers=dict(headers or {}))
