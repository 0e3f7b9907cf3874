"""The headers that every answer carries, and Secure cookies whenever the request came by https."""

from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_cache_control

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def content_security_policy(host: str) -> str:
    """Return the policy for pages of `host`: only its own files and sockets, and nothing inline."""
    sockets = f" ws://{host} wss://{host}" if host else ""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        f"connect-src 'self'{sockets}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def security_headers(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return the middleware that secures every answer; pages with data are never stored."""

    def secure(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        try:
            host = request.get_host()
        except DisallowedHost:
            host = ""
        response.headers.setdefault("Content-Security-Policy", content_security_policy(host))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, no_store=True, private=True)
        if "immutable" in response.headers["Cache-Control"]:
            # Its address says all else, which the middlewares inside cannot know.
            response.headers["Vary"] = "Accept-Encoding"
        if request.is_secure():
            for cookie in response.cookies.values():
                cookie["secure"] = True
        return response

    return secure
