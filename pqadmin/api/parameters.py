"""Parameters that operations share: cursors, limits, ETags, reasons."""

import re
from typing import Annotated

from ninja import Body as Sent
from ninja import Header, Path, Query
from pydantic import Field, StrictStr

from pqadmin.api.bodies import Body, invalid

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


def seen_tag(if_match: str | None) -> str | None:
    """Return the tag that a request names in If-Match; None: any will do. Raises a problem for none and several."""
    if if_match is None or if_match.strip() == "*":
        return None
    one = _TAG.fullmatch(if_match.strip())
    if one is None:
        raise invalid([{"in": "header", "field": "If-Match", "message": "is one ETag, or *"}])
    return one[1]
