"""The reference of the API, made from its schema: for the page of the site and for docs/reference/http-api.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pqadmin.api.docs.openapi import PREFIX, Schema, operations

#: The order in which parameters are told.
_PLACES = ("path", "query", "header")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A parameter, or a member of a body."""

    name: str
    #: path, query, header or body.
    place: str
    kind: str
    required: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation."""

    id: str
    method: str
    path: str
    title: str
    words: Sequence[str]
    fields: Sequence[Field]
    #: Content types of the body, of several.
    bodies: Sequence[str]
    #: Status and model of each answer that is no refusal.
    answers: Sequence[tuple[str, str]]
    refusals: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The operations of one tag."""

    name: str
    words: str
    operations: Sequence[Operation]


def groups(document: Schema) -> list[Group]:
    """Return the operations by tag, in the order of the tags."""
    every = [(_tag(found), _operation(document, path, method, found)) for path, method, found in operations(document)]
    return [
        Group(name=tag["name"], words=tag["description"], operations=here)
        for tag in document["tags"]
        if (here := [each for name, each in every if name == tag["name"]])
    ]


def models(document: Schema) -> list[tuple[str, str, list[Field]]]:
    """Return name, meaning and members of the objects that answers hold."""
    return [
        (name, _one_line(found.get("description", "")), _members(document, found))
        for name, found in sorted(document["components"]["schemas"].items())
        if found.get("properties")
    ]


def _tag(operation: Schema) -> str:
    return str(operation["tags"][0])


def _operation(document: Schema, path: str, method: str, found: Schema) -> Operation:
    parameters = sorted(found["parameters"], key=lambda each: _PLACES.index(each["in"]))
    fields = [
        Field(
            name=each["name"],
            place=each["in"],
            kind=kind_of(each["schema"]),
            required=each["required"],
            words=_one_line(each.get("description", "")),
        )
        for each in parameters
        if each["name"] != "Idempotency-Key"  # of every write: told once
    ]
    content = found.get("requestBody", {}).get("content", {})
    for schema in content.get("application/json", {}).get("schema", {}), *_choices(content):
        fields += [field for field in _members(document, _resolved(document, schema)) if field not in fields]
    answers = found["responses"].items()
    return Operation(
        id=found["operationId"],
        method=method.upper(),
        path=path.removeprefix(PREFIX),
        title=found["summary"],
        words=[_one_line(part) for part in found.get("description", "").split("\n\n")],
        fields=fields,
        bodies=list(content) if len(content) > 1 else [],
        answers=[(status, _answer(answer)) for status, answer in answers if status < "300"],
        refusals=[status for status, _ in sorted(answers) if status >= "400"],
    )


def _choices(content: Schema) -> Sequence[Schema]:
    found: Sequence[Schema] = content.get("application/json", {}).get("schema", {}).get("oneOf", ())
    return found


def _answer(answer: Schema) -> str:
    schema = answer.get("content", {}).get("application/json", {}).get("schema")
    return kind_of(schema) if schema else ", ".join(f"`{kind}`" for kind in answer.get("content", {}))


def _members(document: Schema, schema: Schema) -> list[Field]:
    required = schema.get("required", ())
    return [
        Field(
            name=name,
            place="body",
            kind=kind_of(member),
            required=name in required,
            words=_one_line(member.get("description", "")),
        )
        for name, member in schema.get("properties", {}).items()
    ]


def _resolved(document: Schema, schema: Schema) -> Schema:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Schema = document["components"]["schemas"][name] if name else schema
    return found


def kind_of(schema: Any) -> str:
    """Return the kind of a value in few words."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(kind_of, schema[several])))
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any JSON")


def _one_line(text: str) -> str:
    return " ".join(text.split())
