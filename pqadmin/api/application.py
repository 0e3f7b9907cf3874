"""The API as a whole: its operations, and the answer to every error."""

import logging
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from pqadmin import __version__
from pqadmin.accounts.arming import NotArmed
from pqadmin.accounts.authentication import Unauthenticated
from pqadmin.accounts.caller import AdminNeeded, Caller, VerbMissing
from pqadmin.accounts.rights import RightMissing
from pqadmin.api import audit_and_trash, bulk, items, problems, search, streams, verbs
from pqadmin.api.administration import boards, people, tokens
from pqadmin.api.bodies import JSONBodies, invalid, told
from pqadmin.api.docs import about
from pqadmin.api.events import stream
from pqadmin.api.parameters import refuse_unknown
from pqadmin.api.problems import Problem
from pqadmin.api.queues import catalog, groups, operations, push_templates, sample_load, store_clients
from pqadmin.api.request import ApiRequest
from pqadmin.api.request_caller import CsrfRefused, caller_of
from pqadmin.pages import visibility
from pqadmin.pages.refusals import InvalidField, NotPossible, Uncovers
from queues.admin import LogLimit
from queues.errors import QueueError, QueueNotFound, StoreError

log = logging.getLogger(__name__)
_limited = LogLimit(log)


async def authenticate(request: ApiRequest) -> Caller:
    """Return the caller of a request; every operation asks for one."""
    return await caller_of(request)


class Api(NinjaAPI):
    """Ninja's, with our answer to errors, and without the one that it makes for views that would return none."""

    def create_temporal_response(self, request: HttpRequest) -> HttpResponse:
        """Return what is not used: each view returns an answer of its own."""
        return _UNUSED

    def on_exception(self, request: HttpRequest, exc: Any) -> HttpResponse:
        """Return the problem that an error is."""
        return answer_error(request, exc)


_UNUSED = HttpResponse()
api = Api(
    title="pqadmin",
    version=__version__,
    description="Named, durable, double-ended priority queues, for programs of every language.",
    openapi_url=None,
    docs_url=None,
    urls_namespace="api",
    auth=authenticate,
    parser=JSONBodies(),
)
# One address is of one router: that of items lists them too.
for _router in dict.fromkeys(
    part.router
    for part in (
        *(streams, catalog, store_clients, operations, groups, push_templates, sample_load),
        *(verbs, items, bulk, audit_and_trash, search, stream, people, tokens, boards),
    )
):
    refuse_unknown(_router)
    api.add_router("", _router)
api.add_router("", about.router_of(api))


def answer_error(request: HttpRequest, error: Exception) -> HttpResponse:
    """Return the problem that an error is."""
    match error:
        case Problem():
            members, headers = problems.shape(error.code, error.detail, **error.values), error.headers
        case Uncovers():
            members, headers = problems.shape("Uncovers", str(error)), {}
        case InvalidField():
            return answer_error(request, invalid([{"in": "body", "field": error.field, "message": str(error)}]))
        case NotPossible():
            members, headers = problems.shape("NotPossible", str(error), field=error.field or None), {}
        case visibility.NotThere() | visibility.NotYours():
            members, headers = problems.shape("Forbidden", str(error)), {}
        case QueueNotFound() if error.suggestions:
            caller = getattr(request, "auth", None)
            near = caller.scope.of_those(error.suggestions) if isinstance(caller, Caller) else ()
            members, headers = problems.of_error(QueueNotFound(error.name, tuple(near))), {}
        case QueueError() | StoreError():
            members, headers = problems.of_error(error), {}
        case HttpError(__cause__=Problem() as problem):  # of a body
            return answer_error(request, problem)
        case HttpError():
            members, headers = problems.shape("BadRequest", f"{error}."), {}
        case ValidationError():
            return answer_error(request, invalid(told(error.errors)))
        case Unauthenticated():
            members = problems.shape("Unauthenticated", str(error))
            headers = {"WWW-Authenticate": 'Bearer realm="pqadmin"'}
        case CsrfRefused():
            members, headers = problems.shape("CSRFFailed", f"{error}."), {}
        case NotArmed():
            words = f"The site is read-only ({settings.PQADMIN_ARM_MINUTES} minutes after it was armed it is again)."
            members, headers = problems.shape("NotArmed", words), {}
        case AdminNeeded():
            members, headers = problems.shape("Forbidden", str(error)), {}
        case RightMissing() | VerbMissing() | PermissionDenied():
            members, headers = problems.shape("Forbidden", f"This {error}." if str(error) else "Forbidden."), {}
        case Http404():
            members, headers = problems.shape("NotFound", "The API has nothing at this address."), {}
        case SuspiciousOperation():  # such as a form of too many fields
            members, headers = problems.shape("BadRequest", "The request is malformed."), {}
        case DatabaseError():
            _limited.warn(type(error), "An API request was refused: the database failed: %s", error)
            members, headers = problems.shape("DatabaseError", "The site's database does not answer."), {}
        case ValueError() if isinstance(request, ApiRequest) and request.body_file.closed:
            members, headers = problems.shape("BadRequest", "The client went away before its body was read."), {}
        case _:
            log.error("no answer to %s %s", request.method, request.path, exc_info=error)
            members, headers = problems.shape("InternalError", "The server failed; its log has the details."), {}
    return problems.answer(members, headers)
