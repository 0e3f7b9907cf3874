"""Closed by default: no view without login, and none but the account's own without a role."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme

from pqadmin.accounts.roles import Right, RightMissing, can, role_of

#: In the address of the login page: a form was sent without a login, and changed nothing.
UNSENT = "unsent"
_OPEN = "_pqadmin_open_without_role"

View = Callable[..., HttpResponseBase]


def open_without_role(view: View) -> View:
    """Mark a view of one's own account: it needs a login but no role."""
    setattr(view, _OPEN, True)
    return view


class AccessMiddleware(LoginRequiredMiddleware):
    """Require a login, then a role, for every view without a mark."""

    def process_view(
        self, request: HttpRequest, view_func: View, view_args: tuple[Any, ...], view_kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        """Return the answer that stops the request, or None to let it go on. Raises RightMissing."""
        if not getattr(view_func, "login_required", True):
            return None  # the user is not looked up: an answer that is the same for all does not vary by the session
        refusal = super().process_view(request, view_func, view_args, view_kwargs)
        if refusal is not None or not request.user.is_authenticated:
            return refusal
        if not getattr(view_func, _OPEN, False) and not can(request.user, Right.READ):
            raise RightMissing(Right.READ, role_of(request.user))
        return None

    def handle_no_permission(  # type: ignore[override] # Django's always redirects
        self, request: HttpRequest, view_func: View
    ) -> HttpResponseBase:
        """Redirect to the login page, and after it back to a page. What a form sent is lost: the login page says so."""
        login = resolve_url(self.get_login_url(view_func))
        is_read = request.method in {"GET", "HEAD"}
        back = request.get_full_path() if is_read else _page_before(request)
        if not is_read:
            login += f"?{UNSENT}=1"
        answer: HttpResponse = redirect_to_login(back, login, self.get_redirect_field_name(view_func))
        if "HX-Request" in request.headers:  # a fragment's request: the whole page has to go there
            page = _page_before(request)
            target = redirect_to_login(page, login, self.get_redirect_field_name(view_func)).url
            return HttpResponse(status=401, headers={"HX-Redirect": target})
        return answer


def _page_before(request: HttpRequest) -> str:
    referrer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referrer, {request.get_host()}, require_https=request.is_secure()):
        return "/"
    parts = urlsplit(referrer)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path or "/"
