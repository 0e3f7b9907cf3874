"""Errors from the problems that a server answers: the class is that of the problem's `code`."""

import json
from datetime import datetime
from typing import Any

import httpx

from queues.errors import (
    ERRORS,
    NotAuthenticated,
    NotPermitted,
    RateLimited,
    RequestRefused,
    StoreError,
    StoreUnavailable,
    Worded,
    Words,
)

#: Codes of 503 after which the same request may pass.
_PASSING = frozenset(
    {"Conflict", "DatabaseError", "OutcomeUnknown", "StoreClosed", "StoreUnavailable", "StoreUnreachable"}
)
#: Problems of the API itself.
_OWN: dict[str, type[StoreError]] = {
    "Unauthenticated": NotAuthenticated,
    "Forbidden": NotPermitted,
    "NotArmed": NotPermitted,
    "CSRFFailed": NotPermitted,
    "TooManyRequests": RateLimited,
    "DatabaseError": StoreUnavailable,
}
_MEMBERS = frozenset({"type", "title", "status", "detail", "code"})


def error_of(answer: httpx.Response, host: str) -> Worded:
    """Return the error that an answer tells."""
    problem = _problem(answer)
    code, detail = problem.get("code"), str(problem.get("detail", ""))
    if code in ERRORS:
        return _core_error(ERRORS[code], detail, problem)
    kind = _OWN.get(str(code))
    if kind is None:
        kind = {401: NotAuthenticated, 403: NotPermitted, 429: RateLimited}.get(answer.status_code, RequestRefused)
    if not detail:
        more = answer.headers.get("Location")
        detail = f"{answer.status_code} {answer.reason_phrase}" + (f" to {more}" if more else "")
        kind = StoreUnavailable if answer.status_code in (502, 503, 504) else kind
    return kind("{host} answers: {detail}", host=host, detail=detail)


def result_error(problem: dict[str, Any], host: str) -> Worded:
    """Return the error of one of several results."""
    return _core_error(ERRORS.get(problem["code"], RequestRefused), str(problem["detail"]), problem)


def may_pass(answer: httpx.Response) -> bool:
    """Say whether the same request may pass when it is repeated."""
    if answer.status_code in (429, 502, 504):
        return True
    return answer.status_code == 503 and _problem(answer).get("code", "Conflict") in _PASSING


def decides(answer: httpx.Response) -> bool:
    """Say whether an error tells that a keyed request was not executed.

    A store looks at keys before all that it refuses. What comes before that, or of another name, tells nothing.
    """
    code = _problem(answer).get("code")
    return code in ERRORS and code != "KeyReused" and answer.status_code in (409, 412, 413, 422)


def retry_after(answer: httpx.Response) -> float:
    """Return the seconds after which the server wants to be asked again."""
    try:
        return max(0.0, float(answer.headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = json.loads(answer.content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _core_error(kind: type[Worded], detail: str, problem: dict[str, Any]) -> Worded:
    error = kind.__new__(kind)
    error.args = (Words(detail),)
    values = {name: value for name, value in problem.items() if name not in _MEMBERS}
    values["suggestions"] = tuple(values.get("suggestions") or ())
    if "at" in values:
        values["at"] = datetime.fromisoformat(values["at"])
    vars(error).update(values)
    return error
