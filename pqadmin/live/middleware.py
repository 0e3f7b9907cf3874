"""Whoever acts sees it: the page after an act reads the store again, however little ago another page did.

With so many queues that pages show what was read behind their backs (`monitor.PAGE_QUEUES`), it is read again as soon
as that can be done.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from pqadmin.live.monitor import get_monitor


def read_after_acts(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return the middleware that tells the monitor of acts: what somebody signed in sent, and was sent on after."""

    def follow(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if response.status_code == HTTPStatus.SEE_OTHER and request.user.is_authenticated:
            get_monitor().outdated()
        return response

    return follow
