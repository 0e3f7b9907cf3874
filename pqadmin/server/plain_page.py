"""Answers of the server itself, for requests that reach no view."""

import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation
from django.utils.html import escape
from django.utils.translation import gettext_lazy as _

from pqadmin.server.security import HEADERS

#: Seconds after which a client that was refused for lack of room may try again.
RETRY_AFTER = 5


def language_of(headers: Mapping[str, str]) -> str:
    """Return the reader's language by cookie and Accept-Language; `headers` have lower-case names."""
    request = HttpRequest()
    request.META["HTTP_ACCEPT_LANGUAGE"] = headers.get("accept-language", "")
    for part in headers.get("cookie", "").split(";"):
        name, _equals, value = part.strip().partition("=")
        if name == settings.LANGUAGE_COOKIE_NAME:
            request.COOKIES[name] = value
    return translation.get_language_from_request(request)


#: Title and text of each answer, by its status.
_PAGES = {
    400: (_("Bad request"), _("The server does not understand what was sent.")),
    408: (_("The request came too slowly"), _("Nothing was changed. Try again.")),
    413: (
        _("Too much was sent"),
        _("A request to this address may have %(n)s bytes at most. Nothing was changed."),
    ),
    429: (
        _("Too many requests at once"),
        _("Your address has too many requests or connections open. Try again in a few seconds."),
    ),
    431: (
        _("The head of the request is too long"),
        _("The address and the headers of a request may have 16,384 bytes at most. Nothing was changed."),
    ),
    503: (
        _("The site is busy"),
        _("There is no room for another connection now. Try again in a few seconds."),
    ),
}


#: The problems of the API at these statuses, by the ends of their types; its clients read no pages.
_PROBLEMS = {
    400: "bad-request",
    408: "request-too-slow",
    413: "body-too-large",
    429: "too-many-requests",
    431: "head-too-large",
    503: "site-busy",
}
_API = "/api/v1/"


def told(path: str, status: int, language: str = "en", **values: str) -> tuple[bytes, str]:
    """Return the content for a request to a path, and its type: a problem for the API, else the page."""
    if not path.startswith(_API):
        return body(status, language, **values), "text/html; charset=utf-8"
    with translation.override("en"):
        text = str(_PAGES[status][1])
    slug = _PROBLEMS[status]
    members: dict[str, Any] = {
        "type": f"{_API}problems/{slug}",
        "title": slug.replace("-", " ").capitalize(),
        "status": status,
        "detail": text % values if values else text,
        "code": slug.title().replace("-", ""),
    }
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        members["most"] = int(values["n"].replace(",", ""))
    return json.dumps(members).encode(), "application/problem+json"


def headers(status: int, content: bytes, *, content_type: str = "text/html; charset=utf-8") -> dict[str, str]:
    """Return the headers of such an answer."""
    own = {
        "Content-Type": content_type,
        "Content-Length": str(len(content)),
        "Cache-Control": "no-store, private",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    }
    retry = {"Retry-After": str(RETRY_AFTER)} if status in {429, 503} else {}
    return {**HEADERS, **own, **retry}


def body(status: int, language: str = "en", **values: str) -> bytes:
    """Return the page of this status in a language; `values` are those in its text."""
    with translation.override(language):
        title, text = (str(words) for words in _PAGES[status])
    text = text % values if values else text
    return (
        f'<!doctype html><html><meta charset="utf-8"><title>{escape(title)} · pqadmin</title>'
        f'<h1>{escape(title)}</h1><p>{escape(text)}</p><p>{status}</p><p><a href="/">pqadmin</a></p></html>'
    ).encode()


def response(status: int, language: str = "en", path: str = "", **values: str) -> bytes:
    """Return the whole HTTP/1.1 answer, after which the connection is closed."""
    content, kind = told(path, status, language, **values)
    fields = {**headers(status, content, content_type=kind), "Connection": "close"}
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


async def send_answer(
    send: Callable[[dict[str, Any]], Awaitable[None]], status: int, content: bytes, *, head: bool = False, **how: str
) -> None:
    """Send the answer by ASGI; to a HEAD request without its content."""
    fields = [(name.lower().encode(), value.encode()) for name, value in headers(status, content, **how).items()]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": b"" if head else content})
