"""Fresh pages after actions: the page after an action reads the store again, even just after another page."""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from pqadmin.live.monitor import get_monitor


def read_after_acts(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return the middleware that reports actions to the monitor: forms of signed-in users that were answered by 303."""

    def follow(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if response.status_code == HTTPStatus.SEE_OTHER and request.user.is_authenticated:
            get_monitor().outdated()
        return response

    return follow
