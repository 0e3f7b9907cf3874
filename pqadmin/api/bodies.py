"""Bodies of requests: JSON checked by a model, and raw values."""

import re
from collections.abc import Iterable
from itertools import islice
from math import isinf
from typing import Any, TypeVar

from django.http import HttpRequest
from ninja.parser import Parser
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from pqadmin.api.problems import Problem
from pqadmin.files.strict_json import BadJSON, parse
from queues.admin import MAX_TRANSACTION_BYTES

#: Bytes of a body in JSON: what one transaction takes, in base64, and as much again for the rest.
MAX_JSON = 2 * MAX_TRANSACTION_BYTES
JSON, TEXT, BYTES = "application/json", "text/plain", "application/octet-stream"
NDJSON, CSV = "application/x-ndjson", "text/csv"
#: Digits of a number that may be beyond a double, which `from_json` reads as infinite.
_PERHAPS_INFINITE = re.compile(rb"[0-9]{309}|[eE]\+?[0-9]{3}")
#: What ends the name of a member, and what a quotation mark within a text has before it.
_BACKSLASH = ord("\\")
_MEMBER = re.compile(rb'"[ \t\r\n]*:')
#: Errors that are told of one request.
MOST_ERRORS = 20


class Body(BaseModel):
    """The base of what bodies hold: fields that are not known are refused.

    Not ninja's own, which reads fields of Django's models too: that took half of the time of a push of many.
    """

    model_config = ConfigDict(extra="forbid", strict=True)


M = TypeVar("M", bound=Body)


def content_type(request: HttpRequest) -> str:
    """Return the body's content type without its parameters, in lower case."""
    return (request.content_type or "").lower()


def raw(request: HttpRequest, most: int = MAX_JSON) -> bytes:
    """Return the body; raise a problem if it is too large."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > most or len(request.body) > most:
        raise Problem("BodyTooLarge", f"The body of such a request has at most {most:,} bytes.", {"most": most})
    return request.body


def json_of(request: HttpRequest) -> Any:
    """Return the body's JSON; an empty body is an empty object."""
    body = raw(request, MAX_JSON)
    if not body:
        return {}
    if content_type(request) not in (JSON, ""):
        raise Problem("UnsupportedMediaType", f"This address takes {JSON}, not {content_type(request)!r}.")
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        words = "is nested too deeply" if "recursion" in str(error) else f"is no JSON: {error}"
        raise Problem("BadRequest", f"The body {words}.") from None
    if _PERHAPS_INFINITE.search(body) and _has_infinite(found):
        raise Problem("BadRequest", "The body has a number that is too large for a double.")
    written = _members_written(body)
    if not (isinstance(found, dict) and written == len(found)) and written != _members_read(found):
        try:
            parse(body.decode())
        except BadJSON as error:
            raise Problem("BadRequest", f"The body cannot be read: {error}.") from None
    return found


def _members_written(body: bytes) -> int:
    """Return how many members the objects of a JSON text have, each counted that has the name of another."""
    found = 0
    for each in _MEMBER.finditer(body):
        at = each.start() - 1
        while body[at] == _BACKSLASH:  # a quotation mark behind an odd number of these is one of a text
            at -= 1
        found += (each.start() - at) % 2
    return found


def _members_read(found: Any) -> int:
    """Return how many members the objects of JSON have."""
    count, left = 0, [found]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            count += len(each)
            left += each.values()
        elif isinstance(each, list):
            left += each
    return count


def _has_infinite(found: Any) -> bool:
    if isinstance(found, dict):
        found = list(found.values())
    return any(map(_has_infinite, found)) if isinstance(found, list) else isinstance(found, float) and isinf(found)


class JSONBodies(Parser):
    """Reads the bodies that operations declare."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the body's JSON; raise a problem."""
        return json_of(request)


def checked(found: Any, model: type[M]) -> M:
    """Return JSON as the model reads it; raise a problem that lists what is wrong."""
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise invalid(told(error.errors(include_url=False, include_input=False), "body")) from None


def told(errors: Iterable[Any], place: str = "") -> list[dict[str, Any]]:
    """Return what is wrong, and where, without what was sent; without a place the first part of each says which."""
    found: list[dict[str, Any]] = []
    for one in islice(errors, MOST_ERRORS):
        if (shape := _told(one, place)) not in found:  # each type that a field may have is an error of its own
            found.append(shape)
    return found


def _told(error: Any, place: str) -> dict[str, Any]:
    where = list(map(str, error["loc"]))
    if not place:
        place, *where = where
        if place == "body":  # a view's parameter of this name holds it
            where = where[1:]
    if where and where[-1] == _OF_PRIORITIES.get(error["type"]):
        return {"in": place, "field": ".".join(where[:-1]), "message": "should be a number or text"}
    return {"in": place, "field": ".".join(where), "message": _plain(error)}


#: The types that a priority may have, by the errors of values that are of none of them.
_OF_PRIORITIES = {"int_type": "int", "float_type": "float", "string_type": "str"}


#: What pydantic says in words of its own, by the types of its errors.
_PLAIN = {
    "missing": "is needed",
    "extra_forbidden": "is not known here",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "should be an object"),
    "list_type": "should be a list",
    "string_type": "should be text",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "should be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "should be a number"),
    "finite_number": "should be a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "should be true or false"),
    "greater_than": "should be more than {gt}",
    "greater_than_equal": "should be at least {ge}",
    "less_than": "should be less than {lt}",
    "less_than_equal": "should be at most {le}",
    "string_too_short": "should have at least {min_length:,} characters",
    "string_too_long": "should have at most {max_length:,} characters",
    "too_short": "should have at least {min_length:,}, not {actual_length:,}",
    "too_long": "should have at most {max_length:,}, not {actual_length}",
    "string_pattern_mismatch": "should match {pattern}",
    "literal_error": "should be {expected}",
    "value_error": "{error}",
    "timezone_aware": "should have a time zone",
}


def _plain(error: Any) -> str:
    """Return the words of an error of pydantic."""
    words = _PLAIN.get(error["type"])
    if words is None:
        return str(error["msg"]).replace("Input should", "should")
    values = error.get("ctx", {})
    return words.format(
        **{name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in values.items()}
    )


def invalid(errors: list[dict[str, Any]]) -> Problem:
    """Return the problem of fields or parameters that are wrong."""
    words = "; ".join(f"{one['field'] or one['in']}: {one['message'].rstrip('.')}" for one in errors[:3])
    return Problem("InvalidRequest", f"The request is not valid. {words}.", {"errors": errors})
