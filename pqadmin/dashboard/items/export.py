"""Exports of items: what a queue's page shows, as a file that an import reads again."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.items import query
from pqadmin.display.errors import said
from pqadmin.display.redaction import rules_of
from pqadmin.files import items_export
from pqadmin.files.entries import Format
from pqadmin.pages import streaming
from pqadmin.pages.queue_context import about, status_of
from pqadmin.store import get_store
from queues.errors import QueueError


@require_safe
@require(Right.READ)
def export(request: HttpRequest, name: str) -> HttpResponseBase:
    """Offer the formats, or hand out the items that the page's query shows, in its order."""
    with get_store().suggesting():
        queue = get_store().queue(name)
    asked = query.asked(request.GET, queue)
    wrong = " ".join(asked.wrong.values())
    if asked.state == query.TRASH:
        wrong = _("The trash is no state of items: what is in it can be undone, not exported.")
    if asked.state == query.FINISHED:
        wrong = _("Finished items cannot be exported: the queue keeps only the beginning of their values.")
    rules = rules_of(queue.config.redact)
    wanted = request.GET.get("format", "")
    if wanted not in ("csv", "ndjson") or wrong:
        context = about(
            request,
            status_of(name),
            wrong=wrong,
            query=asked.query,
            searching=asked.searching,
            hiding=bool(rules),
            plain={each: asked.address(format=each) for each in ("ndjson", "csv")},
            detailed={each: asked.address(format=each, details="1") for each in ("ndjson", "csv")},
        )
        return render(request, "dashboard/export.html", context, status=400 if wrong else 200)
    try:
        queue.query(asked.query)
    except QueueError as error:
        return HttpResponse(said(error), status=400, content_type="text/plain; charset=utf-8")
    file_format: Format = "csv" if wanted == "csv" else "ndjson"
    return streaming.stream(
        request,
        items_export.lines(
            queue,
            asked.query,
            end=asked.end,
            rules=rules,
            file_format=file_format,
            details=request.GET.get("details") == "1",
        ),
        name=streaming.file_name(queue.name, asked.state, ending=file_format),
        file_format=file_format,
    )
