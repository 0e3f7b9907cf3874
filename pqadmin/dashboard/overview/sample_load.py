"""The sample load, started and stopped from the overview: queues of a shop with traffic, to see everything move."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.display.addresses import leave
from pqadmin.load.sample import SECONDS, SampleRuns, sample_load, sample_plans
from pqadmin.pages import act_view, once, toasts, visibility
from pqadmin.pages.refusals import explain
from pqadmin.store import get_store
from queues.errors import QueueError, StoreError


class OtherQueues(QueueError):
    """The store holds queues that are not the sample load's."""


@require_POST
@require(Right.ACT)
def start(request: HttpRequest) -> HttpResponse:
    """Create the queues that are not there yet, and let traffic flow for some minutes."""
    overview = reverse("dashboard:overview")
    planned, acts = sample_plans(), get_store().actions(request.user.get_username())
    try:
        for plan in planned:
            visibility.new_name(request, plan.name)
        with once.once(request, "sample-load") as sending:
            sending.answer = overview
            there = get_store().directory()
            if there.keys() - {plan.name for plan in planned}:
                raise OtherQueues("The store holds other queues.")
            for plan in planned:
                if plan.name not in there:
                    acts.create_queue(plan.name, kind=plan.kind, priority_type=plan.priority_type, bands=plan.bands)
            sample_load.start(settings.PQADMIN_STORE, planned)
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, overview)
    except once.FormRefused:
        return act_view.refuse(request, act_view.stale_form(), overview)
    except SampleRuns:
        toasts.failed(request, _("The sample load is running already."))
        return leave(overview)
    except OtherQueues:
        words = _("The sample load is for a store without other queues, and this one has some. Nothing was created.")
        toasts.failed(request, words)
        return leave(overview)
    except (QueueError, StoreError) as error:
        return act_view.refuse(request, explain(error), overview)
    minutes = {"n": round(SECONDS / 60)}
    toasts.done(request, _("The sample load runs for %(n)s minutes. Watch the queues fill and empty.") % minutes)
    return leave(overview)


@require_POST
@require(Right.ACT, harmless=lambda request: True)
def stop(request: HttpRequest) -> HttpResponse:
    """End the traffic; the queues stay as they are."""
    try:
        for plan in sample_plans():
            visibility.new_name(request, plan.name)
    except visibility.NotYours as error:
        return act_view.refuse(request, explain(error), reverse("dashboard:overview"))
    if sample_load.stop():
        toasts.done(request, _("The sample load has stopped. Its queues stay as they are."))
    else:
        toasts.done(request, _("The sample load had ended already."))
    return leave(reverse("dashboard:overview"))
