"""Parameters that operations share: cursors, limits, ETags, reasons."""

import re
from difflib import get_close_matches
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from django.http import HttpRequest
from ninja import Body as Sent
from ninja import Header, NinjaAPI, Path, Query, Router
from ninja.operation import Operation
from ninja.params.models import BodyModel, HeaderModel, ParamModel, QueryModel
from pydantic import Field, StrictStr

from pqadmin.accounts.roles import SAFE
from pqadmin.api.bodies import MOST_ERRORS, Body, invalid
from pqadmin.api.problems import Problem

#: What clients send that have nothing to say.
NO_BODY = (b"", b"{}", b"null")
_TAG = re.compile(r'(?:W/)?"?([^\s",]+)"?')
#: Where a list goes on: what the answer before it gave as `next`.
Cursor = Annotated[
    str | None, Query(max_length=14_000, pattern=r"^[A-Za-z0-9_=-]*$", description="The `next` of the answer before.")
]
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many at most.")]
#: The id of something of the site's tables.
RowId = Annotated[int, Path(ge=1, le=2**63 - 1)]
#: What names in a list hold.
Containing = Annotated[str, Query(max_length=150, description="Only those with this in their names.")]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match", description="One ETag, of what was seen: if that has changed since, nothing is done (412)."
    ),
]
ReasonField = Annotated[StrictStr, Field("", description="Why, for the audit.")]
_KEEP = "Seconds for which the trash keeps it, 0 for not at all; at most and by default 7 days."
KeepField = Annotated[float | None, Field(ge=0, description=_KEEP)]
KeepQuery = Annotated[float | None, Query(ge=0, description=_KEEP)]
ReasonQuery = Annotated[str, Query(description="Why, for the audit.")]


class Reasoned(Body):
    """Why something is done."""

    reason: ReasonField


#: A body that may be left out, and what it is then.
OptionalReason = Annotated[Reasoned, Sent()]
NO_REASON = Reasoned.model_validate({})


def seen_tag(if_match: str | None) -> str | None:
    """Return the tag that a request names in If-Match; None: any will do. Raises a problem for none and several."""
    if if_match is None or if_match.strip() == "*":
        return None
    one = _TAG.fullmatch(if_match.strip())
    if one is None:
        raise invalid([{"in": "header", "field": "If-Match", "message": "is one ETag, or *"}])
    return one[1]


def refuse_unknown(router: Router) -> None:
    """Let the operations of a router refuse query parameters and bodies that they do not have."""
    for view in router.path_operations.values():
        for operation in view.operations:
            operation.models.append(_no_others(operation))


def takes_body(operation: Operation) -> bool:
    """Return whether an operation reads the body of a request."""
    return operation.operation_id == "push" or any(issubclass(model, BodyModel) for model in operation.models)


def _no_others(operation: Operation) -> type[ParamModel]:
    """Return a model of no parameters, which refuses those of the query that no other model has."""
    models: list[Any] = [model for model in operation.models if issubclass(model, QueryModel)]
    known = {name for model in models for name in model.__ninja_flatten_map__}
    lists = {name for model in models for name in getattr(model, "__ninja_collection_fields__", ())}
    bodiless = not takes_body(operation)
    headers: list[Any] = [model for model in operation.models if issubclass(model, HeaderModel)]
    unmatched = not any("If-Match" in model.__ninja_flatten_map__ for model in headers)

    class NoOthers(QueryModel):
        __ninja_param_source__ = "query"  # type: ignore[assignment] # ninja sets it on classes that it makes

        @classmethod
        def resolve(cls, request: HttpRequest, api: NinjaAPI, path_params: dict[str, Any]) -> "NoOthers":
            if "%" in (query := request.META.get("QUERY_STRING", "")):
                try:
                    unquote_to_bytes(query).decode()
                except UnicodeDecodeError:
                    raise Problem("BadRequest", "The query of the address is not valid UTF-8.") from None
            unknown = [name for name in request.GET if name not in known]
            if unknown:
                raise invalid([_unknown(name, known) for name in unknown[:MOST_ERRORS]])
            for name, given in request.GET.lists():
                if len(given) > 1 and name not in lists:
                    raise invalid([{"in": "query", "field": name, "message": "is given twice"}])
            if unmatched and request.method not in SAFE and "HTTP_IF_MATCH" in request.META:
                message = "is not taken here, so it would be ignored"
                raise invalid([{"in": "header", "field": "If-Match", "message": message}])
            if bodiless and request.body.strip() not in NO_BODY:
                message = "is not taken here: the parameters of this address are in its query"
                raise invalid([{"in": "body", "field": "", "message": message}])
            return cls()

    return NoOthers


def _unknown(name: str, known: set[str]) -> dict[str, Any]:
    near = get_close_matches(name[:100], known, n=1)
    message = "is not known here" + (f"; did you mean {near[0]}?" if near else "")
    return {"in": "query", "field": name[:100], "message": message}
