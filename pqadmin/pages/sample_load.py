"""The sample load as people start and stop it: queues of a shop with traffic, to see every page move."""

from collections.abc import Sequence

from django.conf import settings
from django.utils.translation import gettext as _

from pqadmin.accounts.scope import Scope
from pqadmin.load.plan import QueuePlan
from pqadmin.load.sample import SampleRuns, sample_load, sample_plans
from pqadmin.pages import visibility
from pqadmin.pages.refusals import NotPossible
from pqadmin.store import get_store
from queues import Actions


def start(may: Scope, actions: Actions) -> None:
    """Create the queues that are not there yet, and start the traffic; raise `NotPossible`, `NotYours`."""
    planned, there = _may_name(may), get_store().directory()
    if there.keys() - {plan.name for plan in planned}:
        raise NotPossible(
            _("The sample load is for a store without other queues, and this one has some. Nothing was created.")
        )
    if sample_load.ends_at is not None:
        raise _running()
    for plan in planned:
        if plan.name not in there:
            actions.create_queue(plan.name, kind=plan.kind, priority_type=plan.priority_type, bands=plan.bands)
            if plan.max_attempts:
                actions.configure(plan.name, max_attempts=plan.max_attempts)
    try:
        sample_load.start(settings.PQADMIN_STORE, planned)
    except SampleRuns:  # started since by another request
        raise _running() from None


def stop(may: Scope) -> bool:
    """End the traffic, and return whether there was any; raise `NotYours`. The queues stay as they are."""
    _may_name(may)
    return sample_load.stop()


def _running() -> NotPossible:
    return NotPossible(_("The sample load is running already."))


def _may_name(may: Scope) -> Sequence[QueuePlan]:
    """Return the plans of the queues; raise `NotYours` unless the person may act on all of these names."""
    planned = sample_plans()
    for plan in planned:
        visibility.new_name(may, plan.name)
    return planned
