"""Whoever acts sees it: the page after an act reads the store again, however little ago another page did."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from pqadmin.live.monitor import get_monitor

_READING = ("GET", "HEAD", "OPTIONS")


def read_after_acts(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return the middleware that tells the monitor when somebody may have changed something."""

    def follow(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.method not in _READING:
            get_monitor().outdated()
        return response

    return follow
