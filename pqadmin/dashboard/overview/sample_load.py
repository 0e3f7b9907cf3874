"""Starts and stops the sample load on pages."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.display.addresses import leave
from pqadmin.load.sample import SECONDS
from pqadmin.pages import toasts, visibility
from pqadmin.pages.action_view import ActionView, refuse
from pqadmin.pages.refusals import NotPossible, explain
from pqadmin.pages.sample_load import start, stop
from queues.errors import QueueError, StoreError


class StartView(ActionView):
    """Creates the queues that are not there yet, and lets traffic flow for some minutes."""

    http_method_names = ["post"]
    action = "sample-load"

    def perform(self, form: Any) -> str:
        """Create the queues and start the traffic."""
        start(visibility.scope(self.request), self.actions)
        minutes = {"n": round(SECONDS / 60)}
        words = _("The sample load runs for %(n)s minutes. Watch the queues fill and empty.")
        toasts.done(self.request, words % minutes)
        return self.home

    def refused(self, form: Any, error: QueueError | StoreError) -> HttpResponse:
        """Return the reason why no sample load starts."""
        if not isinstance(error, NotPossible):
            return super().refused(form, error)
        toasts.failed(self.request, str(error))
        return leave(self.home)


@require_POST
@require(Right.ACT, harmless=lambda request: True)
def stop_view(request: HttpRequest) -> HttpResponse:
    """End the traffic; the queues stay as they are."""
    try:
        stopped = stop(visibility.scope(request))
    except visibility.NotYours as error:
        return refuse(request, explain(error), reverse("dashboard:overview"))
    if stopped:
        toasts.done(request, _("The sample load has stopped. Its queues stay as they are."))
    else:
        toasts.done(request, _("The sample load had ended already."))
    return leave(reverse("dashboard:overview"))
