"""Push several at once, pasted or from a file, with every wrong line named; as a job what no one transaction takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.jobs.words import job_url
from pqadmin.dashboard.push import pasted
from pqadmin.dashboard.push.forms import MAX_PASTED, ManyForm, WhenForm
from pqadmin.dashboard.push.pasted import Batch
from pqadmin.display import format as write
from pqadmin.display.addresses import leave, queue_url
from pqadmin.display.errors import said
from pqadmin.display.moments import UNITS
from pqadmin.files import formats
from pqadmin.limits.bodies import takes_uploads
from pqadmin.pages import act_view, once, toasts, uploads
from pqadmin.pages.queue_context import about, status_of
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.store import get_store
from queues import Item, Job, Priority, QueueStatus
from queues.admin import MAX_PUSH_JOB_ITEMS, Pushed, codec_of
from queues.errors import QueueError, QueueNotFound, StoreError

#: Good entries that are shown before they are pushed.
_SAMPLES = 5


@takes_uploads
@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT, harmless=lambda request: "check" in request.POST)
@act_view.seeing_queue
def push_many(request: HttpRequest, name: str) -> HttpResponse:
    """Push what was pasted or is in a file: all of it, or nothing and what is wrong with which line."""
    status = status_of(name)
    if request.method != "POST":
        return render(request, "dashboard/push_many.html", _many_context(request, status, None))
    form = ManyForm(request.POST, request.FILES, attached=status.attached)
    valid = form.is_valid()
    data, wrong = _data(request, form)
    batch = None if wrong else _batch(data, form, status)
    context = _many_context(request, status, form, batch=batch, wrong=wrong) | _shown_again(request, data)
    if not valid:
        return act_view.answer(request, "dashboard/push_many.html", context, refusal=act_view.invalid(form))
    if batch is None or not batch.good:
        return act_view.answer(request, "dashboard/push_many.html", context, refusal=_not_good(batch, wrong))
    if "check" in request.POST:
        return render(request, "dashboard/push_many.html", context)
    try:
        with once.once(request, f"push-many:{status.id}") as sending:
            acts, items = get_store().actions(request.user.get_username()), list(_items(batch))
            begin = acts.begin_push if batch.large else acts.push_undoably
            begun: Job | Pushed = begin(
                name,
                items,
                delay=form.span,
                due=form.moment,
                expect_id=status.id,
                reason=form.cleaned_data["reason"],
            )
            sending.answer = job_url(begun.id) if isinstance(begun, Job) else queue_url(name)
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, queue_url(name))
    except once.FormRefused:
        return act_view.answer(request, "dashboard/push_many.html", context, refusal=act_view.stale_form())
    except (QueueError, StoreError) as error:
        if isinstance(error, QueueNotFound):
            raise
        return act_view.answer(request, "dashboard/push_many.html", context, refusal=explain(error))
    if not isinstance(begun, Job):
        toasts.undoable(request, _pushed_many(begun.items, status.kind == "fifo"), begun.trash_id)
    return leave(sending.answer)


def _items(batch: Batch) -> Iterator[tuple[bytes, Priority | None]]:
    return ((entry.value, entry.priority) for entry in batch.entries)


def _data(request: HttpRequest, form: WhenForm) -> tuple[bytes, str]:
    """Return what was pasted or uploaded, and what is wrong with that."""
    file, text = request.FILES.get("file"), str(form.data.get("items") or "")
    if uploads.too_large(request):
        return b"", _("The file has more than %(size)s. Use the command below.") % {
            "size": write.size(uploads.MAX_FILE)
        }
    if file is not None and text.strip():
        return b"", _("There is a file and there is text: which one is meant? Empty one of them.")
    if file is not None:
        return file.read(), ""
    return text.replace("\r\n", "\n").encode("utf-8", "surrogatepass"), ""


def _batch(data: bytes, form: ManyForm, status: QueueStatus) -> Batch:
    chosen = form.data.get("format") or ""
    file = form.files.get("file")
    named = formats.format_of_name(file.name) if file is not None and file.name else None
    return pasted.read(
        data,
        file_format="csv" if chosen == "csv" else "ndjson" if chosen == "ndjson" else named,
        priority_type=None if status.kind == "fifo" else status.priority_type,
        codec=codec_of(status.codec, status.name),
        at_once=status.attached,
    )


def _not_good(batch: Batch | None, wrong: str) -> Refusal:
    if batch is None or batch.wrong:
        text = wrong if batch is None else batch.wrong
    else:
        text = ngettext("%(n)s line is wrong.", "%(n)s lines are wrong.", batch.bad_count) % {
            "n": write.number(batch.bad_count)
        }
    return Refusal(title=_("Nothing was pushed"), text=text, advice="", status=422)


def _shown_again(request: HttpRequest, data: bytes) -> dict[str, Any]:
    """Put a file's text into the field, as a browser sends no file twice by itself."""
    if "file" not in request.FILES:
        return {"text": request.POST.get("items", "")}
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    fits = 0 < len(text) <= MAX_PASTED // 2 and "\r" not in text.replace("\r\n", "")
    return {"text": text if fits else "", "from_file": fits}


def _pushed_many(items: list[Item], fifo: bool) -> str:
    values = {"n": write.number(len(items))}
    if fifo:
        words = ngettext("Enqueued %(n)s item.", "Enqueued %(n)s items.", len(items)) % values
    else:
        words = ngettext("Pushed %(n)s item.", "Pushed %(n)s items.", len(items)) % values
    due = items[0].due_at if items else None
    return words if due is None else words + " " + _("They are due %(at)s.") % {"at": write.moment_with_utc(due)}


def _many_context(
    request: HttpRequest, status: QueueStatus, form: ManyForm | None, *, batch: Batch | None = None, wrong: str = ""
) -> dict[str, Any]:
    first = [
        {
            "line": entry.line,
            "priority": write.priority_short(entry.priority),
            "value": write.preview(entry.value),
            "size": len(entry.value),
        }
        for entry in (batch.entries[:_SAMPLES] if batch is not None and batch.good else ())
    ]
    return about(
        request,
        status,
        form=form,
        when_form=form,
        when_fields={},
        units=list(UNITS),
        batch=batch,
        bad=[(_place(bad.first, bad.line), said(bad.reason)) for bad in batch.bad] if batch else [],
        first=first,
        text="",
        max_file=uploads.MAX_FILE,
        most=MAX_PUSH_JOB_ITEMS,
        form_number=once.number(request, f"push-many:{status.id}"),
    )


def _place(first: int, last: int) -> str:
    if first == last:
        return _("line %(n)s") % {"n": write.number(first)}
    return _("lines %(first)s to %(last)s") % {"first": write.number(first), "last": write.number(last)}
