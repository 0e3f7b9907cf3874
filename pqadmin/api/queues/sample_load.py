"""The sample load: start it, stop it, and whether it runs."""

from django.http import HttpResponse
from ninja import Router

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api.answers import answer, caller_in, change
from pqadmin.api.authorization import allow
from pqadmin.api.queues import schemas
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.files.shapes import Shape, time_shape
from pqadmin.load.sample import SECONDS, sample_load
from pqadmin.pages.sample_load import start, stop
from pqadmin.site_audit import Author
from pqadmin.store import get_store

router = Router(tags=["Queues"])


@router.get("/sample-load", operation_id="get_sample_load", summary="The sample load", response=schemas.SampleLoad)
@in_thread
def get_sample_load(request: ApiRequest) -> HttpResponse:
    """Return whether the sample load runs in the process that answers, and when it ends by itself."""
    allow(request, Verb.READ, Right.READ)
    ends_at = sample_load.ends_at
    return answer({"running": ends_at is not None, "ends_at": time_shape(ends_at)})


@router.post(
    "/sample-load",
    operation_id="start_sample_load",
    summary="Start the sample load",
    response=schemas.SampleLoadStarted,
)
@in_thread
def start_sample_load(request: ApiRequest) -> HttpResponse:
    """Create the queues of a shop and let traffic flow through them; for a store without other queues."""
    scope = allow(request, Verb.CONFIGURE, Right.ACT)

    def perform(by: Author) -> tuple[None, Shape]:
        start(scope, get_store().actions(by.name, via=by.via))
        return None, {}

    return change(request, perform, lambda _: {"seconds": SECONDS})


@router.delete(
    "/sample-load", operation_id="stop_sample_load", summary="Stop the sample load", response=schemas.SampleLoadStopped
)
@in_thread
def stop_sample_load(request: ApiRequest) -> HttpResponse:
    """End the traffic of the process that answers; the queues stay as they are. A read-only site allows it."""
    caller = caller_in(request)
    caller.require(Verb.CONFIGURE, Right.ACT, only_reads=True)
    return change(request, lambda by: (stop(caller.scope), {}), lambda stopped: {"stopped": stopped})
