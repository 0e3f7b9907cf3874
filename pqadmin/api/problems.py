"""Problem details (RFC 9457): every error that the API answers, with one stable type and one status.

The code of a problem is the name of the error in `queues.errors`, as `--json` prints it, or of one of the API's own
below. Its type is the code in kebab case, an address under which the problem is explained.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse

from pqadmin.files.plain_text import json_text
from queues.errors import ERRORS, QueueError, StoreError, Words

#: The path below which problems are explained.
TYPES = "/api/v1/problems/"
CONTENT_TYPE = "application/problem+json"
#: Seconds after which a request is sent again that met a store that was away.
RETRY_AFTER = 1

#: The status of every error of the core; tests/api compares it with `queues.errors`.
STATUSES = {
    **dict.fromkeys(["QueueNotFound", "ItemNotFound", "TrashNotFound", "JobNotFound", "PatternNotFound"], 404),
    **dict.fromkeys(["ItemChanged", "ValueChanged", "SettingsChanged"], 412),
    **dict.fromkeys(["TooLarge", "ValueTooLarge", "TransactionTooLarge"], 413),
    **dict.fromkeys(
        [
            "AlreadyDone",
            "AlreadyRestored",
            "DepthChanged",
            "HeadChanged",
            "IdTaken",
            "ItemGoneOn",
            "ItemLeased",
            "JobEnded",
            "NotAttached",
            "NotElected",
            "NotForAttached",
            "NotTheRecipe",
            "PlaceTaken",
            "PrefixTaken",
            "QueueClosed",
            "QueueError",
            "QueueExists",
            "QueueFull",
            "QueuePaused",
            "QueueUnreadable",
            "StaleLease",
            "StillMerging",
            "Unreadable",
            "WrongKind",
            "WrongState",
            "EmbeddedOnly",
        ],
        409,
    ),
    **dict.fromkeys(
        [
            "BadCodec",
            "BadCursor",
            "BadEnd",
            "BadGlob",
            "BadKey",
            "BadLimit",
            "BadName",
            "BadPrefix",
            "BadPriority",
            "BadQueueKind",
            "BadSetting",
            "BadState",
            "BadText",
            "BadTime",
            "BadToken",
            "BadValue",
            "ConfirmationMismatch",
            "KeyReused",
            "KeyTooLarge",
            "NaiveTime",
            "SameQueue",
            "TimePassed",
            "Undecodable",
        ],
        422,
    ),
    **dict.fromkeys(
        [
            "Conflict",
            "CopyUnfinished",
            "NewerFormat",
            "NotAStore",
            "OlderFormat",
            "OutcomeUnknown",
            "PathTaken",
            "SourceChanged",
            "StoreClosed",
            "StoreDamaged",
            "StoreError",
            "StoreReadOnly",
            "StoreUnavailable",
            "StoreUnreachable",
            "TargetNotEmpty",
            "TransactionTooOld",
        ],
        503,
    ),
    "StoreFull": 507,
    # Mistakes of this program, not of its caller; and errors of clients alone.
    **dict.fromkeys(
        [
            "AnswerLost",
            "BadStoreURL",
            "ForkedStore",
            "LeaseNotBound",
            "LocalStoreOnly",
            "NestedTransaction",
            "NotAuthenticated",
            "NotPermitted",
            "RateLimited",
            "RequestRefused",
            "ServerUnreachable",
            "TransactionEnded",
            "Worded",
        ],
        500,
    ),
}
#: The API's own problems: status and meaning.
OWN = {
    "BadRequest": (400, "The body or a header cannot be read: it is no JSON, for example."),
    "Unauthenticated": (401, "The request carries no valid token or session."),
    "Forbidden": (403, "The token or its owner may not do this."),
    "NotArmed": (403, "The site is read-only for this session until its user opens the window for writes."),
    "CSRFFailed": (403, "A write by a browser's session needs its CSRF token in the header X-CSRFToken."),
    "NotFound": (404, "The API has nothing at this address, or nothing of this name."),
    "MethodNotAllowed": (405, "The address does not take this method; the header Allow names those it takes."),
    "NotAcceptable": (406, "The answer cannot be written in a format that the header Accept allows."),
    "RequestTooSlow": (408, "The request came too slowly; nothing was changed."),
    "NotPossible": (
        409,
        "A rule of the site forbids it; `field` names the field that is at fault, if one is.",
    ),
    "BodyTooLarge": (413, "The body has more bytes than this address takes; `most` is the limit."),
    "UnsupportedMediaType": (415, "The address does not take a body of this content type."),
    "InvalidRequest": (422, "A parameter or a field of the body is missing or invalid; `errors` lists which and why."),
    "Uncovers": (422, "The move would show values that are hidden here; `uncover` confirms it."),
    "BadFormat": (422, "A line of the file cannot be read; `line` is its number. The lines before it may be pushed."),
    "TooManyRequests": (429, "Too many requests; the header Retry-After says in how many seconds there is room."),
    "HeadTooLarge": (431, "The address, or a header, has more bytes than the server takes."),
    "InternalError": (500, "The server failed; its log has the details."),
    "DatabaseError": (503, "The site's database does not answer."),
    "SiteBusy": (503, "The server has no room for another connection; nothing was changed."),
}


@dataclass(eq=False)
class Problem(Exception):
    """An error of the API's own: its code is in `OWN`."""

    code: str
    detail: str
    #: Further members of the problem.
    values: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def slug_of(code: str) -> str:
    """Return the last part of a problem's type: the code in kebab case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", code).lower()


def title_of(code: str) -> str:
    """Return the title of a problem."""
    words = slug_of(code).replace("-", " ")
    return words[0].upper() + words[1:]


def meaning_of(code: str) -> str:
    """Return what a problem means, in one or two sentences."""
    if code in OWN:
        return OWN[code][1]
    lines = (ERRORS[code].__doc__ or "").split("\n\n")
    return " ".join(lines[0].split())


def status_of(code: str) -> int:
    """Return the HTTP status of a problem."""
    return OWN[code][0] if code in OWN else STATUSES[code]


def every() -> dict[str, str]:
    """Return the code of every problem by its slug."""
    return {slug_of(code): code for code in sorted({*OWN, *STATUSES})}


def shape(code: str, detail: str, **values: Any) -> dict[str, Any]:
    """Return the members of a problem."""
    return {
        "type": TYPES + slug_of(code),
        "title": title_of(code),
        "status": status_of(code),
        "detail": detail,
        "code": code,
        **values,
    }


def code_of(error: QueueError | StoreError) -> str:
    """Return the code of an error of the core."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in STATUSES)


def values_of(error: QueueError | StoreError) -> dict[str, Any]:
    """Return what an error of the core tells besides its words."""
    values: dict[str, Any] = {} if error.index is None else {"index": error.index}
    for name, value in vars(error).items():
        # What an error carries besides its words, as far as it is plain: a depth, a name, the changed settings.
        if name in ("depth", "gone", "total", "queue", "name") and isinstance(value, int | str):
            values[name] = str(value) if isinstance(value, Words) else value
    # The limit that a request is over, as its words tell it.
    if isinstance(most := error.words.values.get("most"), int):
        values["most"] = most
    if isinstance(at := getattr(error, "at", None), datetime):
        values["at"] = at.isoformat(timespec="milliseconds")
    return values


def of_error(error: QueueError | StoreError) -> dict[str, Any]:
    """Return the members of a problem of the core."""
    near = list(getattr(error, "suggestions", ()))
    detail = str(error) if error.index is None else f"Of the items, that of index {error.index}: {error}"
    return shape(code_of(error), detail, suggestions=near, **values_of(error))


def answer(members: dict[str, Any], headers: dict[str, str] | None = None) -> HttpResponse:
    """Return a problem as an answer."""
    response = HttpResponse(json_text(members), status=members["status"], content_type=CONTENT_TYPE)
    if members["status"] == HTTPStatus.SERVICE_UNAVAILABLE:
        response["Retry-After"] = str(RETRY_AFTER)
    for name, value in (headers or {}).items():
        response[name] = value
    return response
