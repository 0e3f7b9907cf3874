"""The API about itself: its schema, its reference as a page, and what each problem means. Open to all."""

from dataclasses import replace
from functools import cache
from threading import Lock

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import mark_safe
from ninja import NinjaAPI, Router

from pqadmin.api import problems, schemas
from pqadmin.api.answers import answer
from pqadmin.api.docs import openapi, reference
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.files.plain_text import json_text
from pqadmin.server.security import content_security_policy


def router_of(api: NinjaAPI) -> Router:
    """Return the operations that describe an API, this one included."""
    router = Router(tags=["About"], auth=None)
    building, built = Lock(), cache(lambda: openapi.document(api))

    def document() -> openapi.Schema:
        with building:
            return built()

    schema_text = cache(lambda: json_text(document()))
    page = cache(lambda: render_to_string("api/docs.html", {"groups": _groups(document())}))

    @router.get("/openapi.json", operation_id="openapi", summary="The schema", openapi_extra={"security": []})
    @in_thread
    def schema(request: ApiRequest) -> HttpResponse:
        """Return the schema of the API, OpenAPI 3.1."""
        return HttpResponse(schema_text(), content_type="application/json")

    @router.get("/docs", operation_id="docs", summary="The reference", include_in_schema=False)
    @in_thread
    def docs(request: ApiRequest) -> HttpResponse:
        """Return the reference as a page that loads nothing from elsewhere."""
        return HttpResponse(page(), headers={"Content-Security-Policy": content_security_policy(request.get_host())})

    @router.get(
        "/problems/{slug}",
        operation_id="explain_problem",
        summary="Explain a problem",
        response=schemas.ProblemType,
        openapi_extra={"security": []},
    )
    async def explain_problem(request: ApiRequest, slug: str) -> HttpResponse:
        """Return what a type of problem means."""
        code = problems.every().get(slug)
        if code is None:
            raise Problem("NotFound", "There is no problem of this type.")
        return answer(
            {
                "type": problems.TYPES + slug,
                "title": problems.title_of(code),
                "status": problems.status_of(code),
                "code": code,
                "meaning": problems.meaning_of(code),
            }
        )

    return router


def _groups(document: openapi.Schema) -> list[reference.Group]:
    return [
        replace(group, operations=[_marked(each) for each in group.operations]) for group in reference.groups(document)
    ]


def _marked(operation: reference.Operation) -> reference.Operation:
    """Return an operation with its texts as HTML."""
    return replace(
        operation,
        words=[_html(part) for part in operation.words],
        fields=[replace(field, words=_html(field.words), kind=_html(field.kind)) for field in operation.fields],
        answers=[(status, _html(kind)) for status, kind in operation.answers],
    )


def _html(text: str) -> str:
    """Return a text as HTML; what is between backticks is code."""
    parts = (f"<code>{escape(part)}</code>" if n % 2 else escape(part) for n, part in enumerate(text.split("`")))
    return mark_safe("".join(parts))  # noqa: S308 # escaped piece by piece
