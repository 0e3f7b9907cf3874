"""The schema of the API, OpenAPI 3.1: ninja's, with what operations have in common, and raw bodies and answers."""

from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from typing import Any

from ninja import NinjaAPI

from pqadmin.api import problems, schemas
from pqadmin.api.answers import MAX_KEY
from pqadmin.api.bodies import BYTES, CSV, JSON, NDJSON, TEXT
from pqadmin.api.values import NewItem, NewItems

Schema = dict[str, Any]

#: Where the API is.
PREFIX = "/api/v1"
_SAFE = ("get", "head", "options")
_TAGS = {
    "Queues": "Queues by name: make, change, operate and look at them.",
    "Items": "Push and take items, look at them, and act on particular ones.",
    "Jobs": "Acts on all items that match, in the background.",
    "Administration": "People, tokens and boards.",
    "Records": "What was done, its author, and undo.",
    "Events": "What changes, as it happens.",
    "About": "The API itself.",
}
_SECURITY = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token, made on the page Tokens or by `pqadmin create_token`.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "pqadmin_session",
        "description": "A browser's session; its writes need the header `X-CSRFToken` too.",
    },
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Names the request, so that it is executed once: the same one sent again within 24 hours gets the "
    "first answer, with the header `Idempotent-Replay`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[ -~]+$"},
}
#: Statuses of refusals: those of every operation, of operations on something named, and of writes.
_ALWAYS, _OF_SOMETHING, _OF_WRITES = (400, 401, 403, 422, 429, 503), (404,), (404, 409, 412, 413, 415, 507)
#: Operations that answer with the address of what was made.
_LOCATED = ("create_queue", "begin_bulk", "create_person", "make_board")
_RAW_HEADERS = ("PQ-Priority", "PQ-Delay", "PQ-Due")
_RAW_WORDS = {
    "PQ-Priority": "Of a raw value: its priority; text percent-encoded.",
    "PQ-Delay": "Of a raw value: seconds until it is ready.",
    "PQ-Due": "Of a raw value: when it becomes ready, ISO 8601 with a zone.",
}


def document(api: NinjaAPI) -> Schema:
    """Return the schema; the same object each time."""
    return _document(api)


@cache
def _document(api: NinjaAPI) -> Schema:
    found: Schema = dict(api.get_openapi_schema(path_prefix=f"{PREFIX}/"))
    components = found["components"]
    for model in (schemas.Problem, schemas.Imported, NewItem, NewItems):
        made = model.model_json_schema(ref_template="#/components/schemas/{model}")
        components["schemas"] |= made.pop("$defs", {})
        components["schemas"][model.__name__] = made
    components["securitySchemes"] = _SECURITY
    for path, method, operation in operations(found):
        _complete(path, method, operation)
    by_id = {operation["operationId"]: operation for _, _, operation in operations(found)}
    _push(by_id["push"])
    for name in ("pop", "lease"):
        _raw(by_id[name])
    by_id["export_items"]["responses"]["200"]["content"] = {
        kind: {"schema": {"type": "string"}} for kind in (NDJSON, f"{CSV}; charset=utf-8")
    }
    found["tags"] = [{"name": name, "description": words} for name, words in _TAGS.items()]
    found["info"]["license"] = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
    plain: Schema = _plain(found)
    return plain


def operations(found: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Yield the path, the method and each operation of a schema."""
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _complete(path: str, method: str, operation: Schema) -> None:
    """Add what operations have in common."""
    responses = operation["responses"] = {str(status): answer for status, answer in operation["responses"].items()}
    if "security" in operation and not operation["security"]:  # open to all
        _refuse(responses, 400, 404, 422, 429, 503)
        return
    operation["security"] = [{"session": []}]
    if operation["operationId"] != "create_token":
        operation["security"].insert(0, {"token": []})
    _refuse(responses, *_ALWAYS)
    if operation["operationId"] == "preview_bulk":  # what it looks for needs a body
        _refuse(responses, *_OF_SOMETHING, 409, 413, 415)
    elif method not in _SAFE:
        for body in operation.get("requestBody", {}).get("content", {}).values():
            if "allOf" in body["schema"]:  # with a default, which generators of clients refuse beside an object
                (body["schema"],) = body["schema"]["allOf"]
        operation["parameters"].append(_KEY)
        _refuse(responses, *_OF_WRITES)
        for status in ("200", "201", "202"):
            if status in responses:
                headers = responses[status].setdefault("headers", {})
                headers["Idempotent-Replay"] = _header("`true`: the answer is the first one, of an earlier request.")
                if status != "200" and operation["operationId"] in _LOCATED:
                    headers["Location"] = _header("The address of what was made.")
    elif "{" in path or operation["parameters"]:
        _refuse(responses, *_OF_SOMETHING)
        _refuse(responses, 409)
    if operation["operationId"] in ("get_item", "get_queue", "get_board"):
        responses["200"].setdefault("headers", {})["ETag"] = _header("For `If-Match`.")
    if operation["operationId"] in ("pop", "lease"):
        _refuse(responses, 406)
    if operation["operationId"] in ("peek", "list_items", "search"):
        _refuse(responses, 413)


def _refuse(responses: Schema, *statuses: int) -> None:
    for status in statuses:
        content = {problems.CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        responses.setdefault(str(status), {"description": HTTPStatus(status).phrase, "content": content})


def _header(words: str) -> Schema:
    return {"description": words, "schema": {"type": "string"}}


def _push(operation: Schema) -> None:
    """Describe the bodies of a push."""
    text = {"schema": {"type": "string"}}
    operation["requestBody"] = {
        "required": True,
        "content": {
            JSON: {
                "schema": {
                    "oneOf": [{"$ref": "#/components/schemas/NewItem"}, {"$ref": "#/components/schemas/NewItems"}]
                }
            },
            BYTES: {"schema": {"type": "string", "format": "binary"}},
            TEXT: text,
            NDJSON: text,
            CSV: text,
        },
    }
    operation["parameters"] += [
        {"name": name, "in": "header", "required": False, "description": _RAW_WORDS[name], "schema": {"type": "string"}}
        for name in _RAW_HEADERS
    ]
    made = operation["responses"]["201"]["content"][JSON]
    made["schema"] = {"anyOf": [made["schema"], {"$ref": "#/components/schemas/Imported"}]}


def _raw(operation: Schema) -> None:
    """Describe the raw answer of a take."""
    responses = operation["responses"]
    responses["200"]["content"] |= {
        BYTES: {"schema": {"type": "string", "format": "binary"}},
        f"{TEXT}; charset=utf-8": {"schema": {"type": "string"}},
    }
    responses["204"] = {"description": "Nothing was ready, for a raw answer."}


def _plain(found: Any) -> Any:
    """Return plain values of JSON: ninja's schema has members of its own kinds, and shared ones."""
    if isinstance(found, dict):
        return {str(name): _plain(value) for name, value in found.items()}
    return [_plain(value) for value in found] if isinstance(found, list | tuple) else found
