"""The fast path of the API: usual requests of programs, without parsing again what only their heads decide.

A program sends the same head again and again. What follows from it alone (operation, parameters, address, token) is
kept; it is found by the code that finds it for every request. Whether the token holds, its rate, the body and the queue
are looked at each time. A request that is refused before its view runs is answered the usual way instead: from its
first byte on, as if it had not been here.
"""

from collections.abc import Coroutine
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from django.http.response import HttpResponse
from ninja.operation import Operation
from ninja.params.models import BodyModel, ParamModel

from pqadmin.api import verbs
from pqadmin.api.application import answer_error, api
from pqadmin.api.bodies import BYTES, JSON, TEXT, content_type
from pqadmin.api.cors import Cors
from pqadmin.api.handler import resolved, whole_answer
from pqadmin.api.parameters import takes_body
from pqadmin.api.request import ApiRequest
from pqadmin.api.request_caller import caller_now, count, mark_token
from pqadmin.conf.proxy import TrustedProxy
from pqadmin.limits import body_size
from pqadmin.server.admission import Admission
from pqadmin.server.whole_request import Answer, WholeRequest, fields_of

#: Heads that are kept.
_HEADS = 1_000
#: The operations of the fast path, by their routes.
_OPERATIONS: dict[str, Operation] = {
    f"api/v1{path.replace('{', '<').replace('}', '>')}": operation
    for path, view in verbs.router.path_operations.items()
    for operation in view.operations
    if operation.operation_id in ("push", "pop", "lease", "ack", "release", "extend")
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What follows from the head of a request and the address of its client."""

    operation: Operation
    #: The arguments of the view but the body; the models of that.
    arguments: dict[str, Any]
    bodies: list[type[ParamModel]]
    #: Bytes of a body; whether there should be none.
    most: int
    bodiless: bool
    request: ApiRequest
    client: str
    #: Headers of the answer for pages of other origins.
    headers: list[tuple[bytes, bytes]]


class FastPath:
    """Answers usual requests of one event loop; see `pqadmin.server.http_channel`."""

    def __init__(self, proxy: TrustedProxy, admission: Admission, cors: Cors) -> None:
        self._proxy, self._admission, self._cors = proxy, admission, cors
        self._plan = lru_cache(_HEADS)(self._made)

    def begin(
        self, request: WholeRequest, client: str, *, in_loop: bool = False
    ) -> Coroutine[Any, Any, Answer | None] | None:
        """Return what answers a request, or None, or returns None where that is to go the other way."""
        plan = self._plan(request.head, client)
        if plan is None or len(request.body) > plan.most or (plan.bodiless and request.body):
            return None
        return self._answer(plan, request, in_loop)

    async def _answer(self, plan: _Plan, whole: WholeRequest, in_loop: bool) -> Answer | None:
        with self._admission.place(plan.client) as admitted:
            if not admitted:
                return None
            request = _request(plan.request, whole)
            request.in_loop = in_loop
            try:
                caller = await caller_now(request)
                arguments = dict(plan.arguments)
                for model in plan.bodies:
                    arguments.update(model.resolve(request, api, {}))
                count(request, caller)
            except Exception:  # the other way tells it
                return None
            request.auth = caller
            try:
                response: HttpResponse = await plan.operation.view_func(request, **arguments)
            except Exception as error:  # each has an answer
                response = answer_error(request, error)
            status, headers, body = whole_answer(response, request.scope)
            return Answer(status, [*headers, *plan.headers], body)

    def _made(self, head: bytes, client: str) -> _Plan | None:
        """Return the plan of a head; None: it is not of the usual ones."""
        found = fields_of(head)
        if found is None:
            return None
        target, fields = found
        path, _, query = target.partition(b"?")
        scope = self._proxy.believed(
            {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": "POST",
                "path": unquote(path.decode("ascii")),
                "raw_path": path,
                "root_path": "",
                "scheme": "http",
                "query_string": query,
                "headers": fields,
                "client": [client, 0],
            }
        )
        try:
            request = ApiRequest(scope, BytesIO(), None)
            match = resolved(request)
            operation = _OPERATIONS[match.route]
            bodies = [model for model in operation.models if issubclass(model, BodyModel)]
            arguments: dict[str, Any] = {}
            for model in operation.models:
                if model not in bodies:
                    arguments.update(model.resolve(request, api, match.kwargs))
        except Exception:  # the other way tells it
            return None
        unusual = arguments.get("wait") or content_type(request) not in (JSON, BYTES, TEXT, "")
        if unusual or not mark_token(request):
            return None
        return _Plan(
            operation=operation,
            arguments=arguments,
            bodies=bodies,
            most=body_size.most(target),
            bodiless=not takes_body(operation),
            request=request,
            client=str(scope["client"][0]),
            headers=self._cors.headers_for(dict(fields)),
        )


def _request(like: ApiRequest, whole: WholeRequest) -> ApiRequest:
    """Return a request with the head of one that was read before."""
    request = ApiRequest.__new__(ApiRequest)
    vars(request).update(vars(like))
    request.META = like.META.copy()
    if whole.length is not None:
        request.META["CONTENT_LENGTH"] = whole.length
    if whole.key is not None:
        request.META["HTTP_IDEMPOTENCY_KEY"] = whole.key
    request.scope = dict(like.scope)
    request.set_body(whole.body)
    return request
