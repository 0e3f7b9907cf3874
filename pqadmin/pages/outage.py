"""Turns a store or database that cannot serve into a 503 page, and an empty refusal of a method into a page."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from pqadmin.pages import error_pages


class StoreErrorMiddleware:
    """Answer 503 with Retry-After where a view let an error of the store or of the database through."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on; an empty 405 becomes a page."""
        response = self._get_response(request)
        if response.status_code == 405 and not getattr(response, "content", b"."):
            return error_pages.not_allowed(request, response.headers["Allow"])
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page for an outage; None leaves other exceptions alone."""
        return error_pages.outage(request, exception)
