"""What operations ask of a request: the right of its caller, the queue that it names, and common parameters."""

import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

from django.http import HttpRequest
from ninja import Body as Sent
from ninja import Header, Query
from pydantic import Field, StrictStr

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope
from pqadmin.api.answers import caller_in
from pqadmin.api.bodies import Body, invalid
from pqadmin.store import get_store
from queues import AnyQueue

_TAG = re.compile(r'(?:W/)?"?([^\s",]+)"?')
#: Where a list goes on: what the answer before it gave as `next`.
Cursor = Annotated[
    str | None, Query(max_length=14_000, pattern=r"^[A-Za-z0-9_=-]*$", description="The `next` of the answer before.")
]
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many at most.")]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match", description="One ETag, of what was seen: if that has changed since, nothing is done (412)."
    ),
]
ReasonField = Annotated[StrictStr, Field("", description="Why, for the audit.")]
KeepField = Annotated[
    float | None,
    Field(ge=0, description="Seconds for which the trash keeps it, 0 for not at all; at most and by default 7 days."),
]
ReasonQuery = Annotated[str, Query(description="Why, for the audit.")]


class Reasoned(Body):
    """Why something is done."""

    reason: ReasonField


#: A body that may be left out, and what it is then.
OptionalReason = Annotated[Reasoned, Sent()]
NO_REASON = Reasoned.model_validate({})


def allow(request: HttpRequest, verb: Verb, right: Right, queue: str | None = None) -> Scope:
    """Return what the caller may do; raise what refuses this."""
    caller = caller_in(request)
    caller.require(verb, right, queue)
    return caller.scope


def found(request: HttpRequest, name: str, verb: Verb, right: Right) -> AnyQueue:
    """Return the queue if the caller has the right on it; raise `QueueNotFound`."""
    allow(request, verb, right, name)
    return get_store().queue(name)


def address(*parts: str) -> str:
    """Return the address of something of the API."""
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


def seen_tag(if_match: str | None) -> str | None:
    """Return the tag that a request names in If-Match; None: any will do. Raises a problem for none and several."""
    if if_match is None or if_match.strip() == "*":
        return None
    one = _TAG.fullmatch(if_match.strip())
    if one is None:
        raise invalid([{"in": "header", "field": "If-Match", "message": "is one ETag, or *"}])
    return one[1]


def tagged(tag: str) -> Mapping[str, str]:
    """Return the header of an answer that shows something with this tag."""
    return {"ETag": f'"{tag}"'}
