"""Turns a store that can not serve into a 503 page that says what happened and when to come back."""

import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from pqadmin.server import errors
from queues.errors import NewerFormat, OutcomeUnknown, StoreError

log = logging.getLogger(__name__)

RETRY_AFTER = 5  # seconds


class StoreErrorMiddleware:
    """Answer 503 with Retry-After where a view let an error of the store through."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page for an error of the store; None leaves other exceptions alone."""
        if not isinstance(exception, StoreError | NewerFormat):
            return None
        log.warning("store error on %s: %s: %s", request.path, type(exception).__name__, exception)
        return errors.page(
            request,
            503,
            title=_("The queues can not be reached"),
            context={
                "reason": str(exception),
                "unknown": isinstance(exception, OutcomeUnknown),
                "retry_after": RETRY_AFTER,
            },
            headers={"Retry-After": str(RETRY_AFTER)},
        )
