"""Starts and stops the sample load: queues of a shop with traffic, to see every page move."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.display.addresses import leave
from pqadmin.load.sample import SECONDS, SampleRuns, sample_load, sample_plans
from pqadmin.pages import toasts, visibility
from pqadmin.pages.action_view import ActionView, refuse
from pqadmin.pages.refusals import explain
from pqadmin.store import get_store
from queues.errors import QueueError, StoreError


class OtherQueues(QueueError):
    """The store holds queues that are not the sample load's."""


class StartView(ActionView):
    """Creates the queues that are not there yet, and lets traffic flow for some minutes."""

    http_method_names = ["post"]
    action = "sample-load"

    def perform(self, form: Any) -> str:
        """Create the queues and start the traffic."""
        planned, there = sample_plans(), get_store().directory()
        for plan in planned:
            visibility.new_name(visibility.scope(self.request), plan.name)
        if there.keys() - {plan.name for plan in planned}:
            raise OtherQueues("The store holds other queues.")
        for plan in planned:
            if plan.name not in there:
                self.actions.create_queue(plan.name, kind=plan.kind, priority_type=plan.priority_type, bands=plan.bands)
                if plan.max_attempts:
                    self.actions.configure(plan.name, max_attempts=plan.max_attempts)
        sample_load.start(settings.PQADMIN_STORE, planned)
        minutes = {"n": round(SECONDS / 60)}
        words = _("The sample load runs for %(n)s minutes. Watch the queues fill and empty.")
        toasts.done(self.request, words % minutes)
        return self.home

    def refused(self, form: Any, error: QueueError | StoreError) -> HttpResponse:
        """Return the reason why no sample load starts."""
        if isinstance(error, SampleRuns):
            toasts.failed(self.request, _("The sample load is running already."))
        elif isinstance(error, OtherQueues):
            words = _(
                "The sample load is for a store without other queues, and this one has some. Nothing was created."
            )
            toasts.failed(self.request, words)
        else:
            return super().refused(form, error)
        return leave(self.home)


@require_POST
@require(Right.ACT, harmless=lambda request: True)
def stop(request: HttpRequest) -> HttpResponse:
    """End the traffic; the queues stay as they are."""
    try:
        for plan in sample_plans():
            visibility.new_name(visibility.scope(request), plan.name)
    except visibility.NotYours as error:
        return refuse(request, explain(error), reverse("dashboard:overview"))
    if sample_load.stop():
        toasts.done(request, _("The sample load has stopped. Its queues stay as they are."))
    else:
        toasts.done(request, _("The sample load had ended already."))
    return leave(reverse("dashboard:overview"))
