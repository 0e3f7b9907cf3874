"""Starts and stops the sample load: queues of a shop with traffic, to see every page move."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import Scope
from pqadmin.display.addresses import leave
from pqadmin.load.plan import QueuePlan
from pqadmin.load.sample import SECONDS, SampleRuns, sample_load, sample_plans
from pqadmin.pages import toasts, visibility
from pqadmin.pages.action_view import ActionView, refuse
from pqadmin.pages.refusals import explain
from pqadmin.store import get_store
from queues import Actions
from queues.errors import QueueError, StoreError


class OtherQueues(QueueError):
    """The store holds queues that are not the sample load's."""


def start(may: Scope, actions: Actions) -> None:
    """Create the queues that are not there yet, and start the traffic.

    Raises `OtherQueues`, `SampleRuns`, `NotYours`.
    """
    planned, there = _may_name(may), get_store().directory()
    if there.keys() - {plan.name for plan in planned}:
        raise OtherQueues(
            _("The sample load is for a store without other queues, and this one has some. Nothing was created.")
        )
    if sample_load.ends_at is not None:
        raise SampleRuns(_("The sample load is running already."))
    for plan in planned:
        if plan.name not in there:
            actions.create_queue(plan.name, kind=plan.kind, priority_type=plan.priority_type, bands=plan.bands)
            if plan.max_attempts:
                actions.configure(plan.name, max_attempts=plan.max_attempts)
    sample_load.start(settings.PQADMIN_STORE, planned)


def stop(may: Scope) -> bool:
    """End the traffic, and return whether there was any; raise `NotYours`. The queues stay as they are."""
    _may_name(may)
    return sample_load.stop()


def _may_name(may: Scope) -> Sequence[QueuePlan]:
    """Return the plans of the queues; raise `NotYours` unless the person may act on all of these names."""
    planned = sample_plans()
    for plan in planned:
        visibility.new_name(may, plan.name)
    return planned


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
        if not isinstance(error, SampleRuns | OtherQueues):
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
