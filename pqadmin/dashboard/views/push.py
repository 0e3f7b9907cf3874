"""Push: one item or many, at once or later, all of them or none. An answer is a redirect: a reload sends nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard import foreign, once, pasted, push_templates, toasts, uploads
from pqadmin.dashboard import format as write
from pqadmin.dashboard.addresses import item_url, queue_url
from pqadmin.dashboard.looking import about, status_of
from pqadmin.dashboard.pasted import Batch
from pqadmin.dashboard.push_forms import MAX_PASTED, UNITS, ManyForm, PushForm, WhenForm
from pqadmin.dashboard.redaction import rules_of
from pqadmin.dashboard.refusals import Refusal, explain
from pqadmin.dashboard.values import NotJSON, hidden, parse_json
from pqadmin.dashboard.views import frame
from pqadmin.dashboard.views.item import look_at
from pqadmin.operations import formats
from pqadmin.server.store import get_store
from queues import Item, QueueStatus
from queues.errors import QueueError, QueueNotFound, StoreError

#: Names of time zones that the field suggests; any other is taken too.
ZONES = (
    "UTC",
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Berlin",
    "Africa/Johannesburg",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Sydney",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the fields of a fresh form come from: an item, a template, or nothing."""

    fields: Mapping[str, str]
    words: str = ""
    #: Why nothing came of it; empty: it did.
    wrong: str = ""
    link: str = ""


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@frame.seeing_queue
def push(request: HttpRequest, name: str) -> HttpResponse:
    """Push one item (FIFO: enqueue it)."""
    status = status_of(name)
    if request.method != "POST":
        source = _source(request, status)
        return render(request, "dashboard/push.html", context_of(request, status, None, source=source))
    form = form_of(request, status)
    context = context_of(request, status, form)
    if "check" in request.POST:
        form.is_valid()
        return render(request, "dashboard/push.html", context | {"check": check(form)})
    if "keep" in request.POST:
        return _keep(request, status, form)
    if not form.is_valid():
        return frame.answer(request, "dashboard/push.html", context, refusal=frame.invalid(form))
    try:
        with once.once(request, f"push:{status.id}") as sending:
            item = (
                get_store()
                .acts(request.user.get_username())
                .push(name, form.payload, priority=form.parsed_priority, delay=form.span, due=form.moment)
            )
            sending.answer = queue_url(name)
    except once.AlreadySent as sent:
        return frame.replayed(request, sent, queue_url(name))
    except once.FormRefused:
        return frame.answer(request, "dashboard/push.html", context, refusal=frame.stale_form())
    except (QueueError, StoreError) as error:
        if isinstance(error, QueueNotFound):
            raise
        refusal = explain(error)
        frame.blame(form, refusal)
        return frame.answer(request, "dashboard/push.html", context, refusal=refusal)
    toasts.done(request, _pushed(item, status.kind == "fifo"), label=_("Look at it"), link=item_url(name, item.id))
    return frame.leave(queue_url(name))


def form_of(request: HttpRequest, status: QueueStatus) -> PushForm:
    """Return the form of one item as it was sent."""
    return PushForm(
        request.POST, fifo=status.kind == "fifo", priority_type=status.priority_type, attached=status.attached
    )


def _pushed(item: Item, fifo: bool) -> str:
    values = {
        "size": write.size(item.size),
        "priority": foreign.priority_short(item),
        "due": write.moment(item.due_at),
    }
    if item.due_at is None:
        words = _("Enqueued %(size)s.") if fifo else _("Pushed %(size)s with priority %(priority)s.")
    elif fifo:
        words = _("Enqueued %(size)s, due %(due)s.")
    else:
        words = _("Pushed %(size)s with priority %(priority)s, due %(due)s.")
    return words % values


def context_of(
    request: HttpRequest, status: QueueStatus, form: PushForm | None, *, source: Source | None = None
) -> dict[str, Any]:
    """Return what the form of one item shows."""
    fields = dict(source.fields) if source is not None else {}
    return about(
        request,
        status,
        push_form=form,
        push_fields=fields,
        when_form=form,
        when_fields=fields,
        source=source,
        units=list(UNITS),
        zones=ZONES,
        templates=push_templates.of(status.id),
        form_number=once.number(request, f"push:{status.id}"),
    )


def _source(request: HttpRequest, status: QueueStatus) -> Source:
    if like := request.GET.get("like", "")[:25_000]:
        return _like(status, like)
    if template := request.GET.get("template", "")[:20]:
        found = push_templates.get(status.id, template)
        if found is None:
            return Source(fields={}, wrong=_("This template is not there any more."))
        return Source(
            fields=found.fields, words=_("From the template “%(name)s”.") % {"name": write.visible(found.name)}
        )
    return Source(fields={})


def _like(status: QueueStatus, item_id: str) -> Source:
    """Fill the form with an item's value and priority; one that hides something is not handed out by this door."""
    status, item = look_at(status.name, item_id)
    if item is None:
        return Source(fields={}, wrong=_("The item to duplicate is not here any more. Nothing was filled in."))
    link = item_url(status.name, item.id)
    if hidden(item.value, rules_of(status.redact)):
        wrong = _("Parts of this item's value are hidden: reveal it on its page, and copy what you need from there.")
        return Source(fields={}, wrong=wrong, link=link)
    fields = {"priority": "" if item.priority is None else str(item.priority)} | _typed(item.value)
    return Source(fields=fields, words=_("A duplicate of the item, not pushed yet."), link=link)


def _typed(value: bytes) -> dict[str, str]:
    """Return a value as it would be typed, to the byte: a form turns some text into other text."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = "\r"
    if "\r" in text or "\0" in text:
        return {"value": base64.b64encode(value).decode(), "encoding": "base64"}
    return {"value": text, "encoding": "text"}


def _keep(request: HttpRequest, status: QueueStatus, form: PushForm) -> HttpResponse:
    """Keep what is typed as a template; it need not be fit to push."""
    form.is_valid()
    name = request.POST.get("template_name", "")
    wrong = push_templates.keep(status.id, name, form, by=request.user.get_username())
    context = context_of(request, status, form) | {"template_name": name[:200], "template_wrong": wrong}
    for field in list(form.errors):
        del form.errors[field]
    if wrong:
        refusal = Refusal(title=_("The template was not kept"), text=wrong, advice="", status=422)
        return frame.answer(request, "dashboard/push.html", context, refusal=refusal)
    kept = _("Kept as the template “%(name)s”. Nothing was pushed.") % {"name": write.visible(name.strip())}
    return render(request, "dashboard/push.html", context | {"kept": kept, "template_name": ""})


@require_POST
@require(Right.ACT)
@frame.seeing_queue
def forget_template(request: HttpRequest, name: str, number: str) -> HttpResponse:
    """Delete a template."""
    status = status_of(name)
    if push_templates.forget(status.id, number):
        toasts.done(request, _("The template is deleted. Nothing else was changed."))
    else:
        toasts.failed(request, _("This template is not there any more."))
    return frame.leave(f"{queue_url(name)}push/")


def check(form: PushForm) -> dict[str, Any]:
    """Say whether what was typed is JSON, how many bytes it has, and what is wrong where."""
    size = write.size(len(form.payload))
    try:
        parse_json(form.payload.decode("utf-8"))
    except NotJSON as error:
        return {"good": False, "text": str(error), "size": size}
    except UnicodeDecodeError:
        return {"good": False, "text": _("These bytes are no text, so no JSON."), "size": size}
    return {"good": True, "text": _("This is JSON."), "size": size}


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@frame.seeing_queue
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
        return frame.answer(request, "dashboard/push_many.html", context, refusal=frame.invalid(form))
    if batch is None or not batch.good:
        return frame.answer(request, "dashboard/push_many.html", context, refusal=_not_good(batch, wrong))
    if "check" in request.POST:
        return render(request, "dashboard/push_many.html", context)
    try:
        with once.once(request, f"push-many:{status.id}") as sending:
            pushed = (
                get_store()
                .acts(request.user.get_username())
                .push_many(
                    name,
                    [(entry.value, entry.priority) for entry in batch.entries],
                    delay=form.span,
                    due=form.moment,
                    expect_id=status.id,
                    reason=form.cleaned_data["reason"],
                )
            )
            sending.answer = queue_url(name)
    except once.AlreadySent as sent:
        return frame.replayed(request, sent, queue_url(name))
    except once.FormRefused:
        return frame.answer(request, "dashboard/push_many.html", context, refusal=frame.stale_form())
    except (QueueError, StoreError) as error:
        if isinstance(error, QueueNotFound):
            raise
        return frame.answer(request, "dashboard/push_many.html", context, refusal=explain(error))
    toasts.done(request, _pushed_many(pushed, status.kind == "fifo"))
    return frame.leave(queue_url(name))


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
    return words if due is None else words + " " + _("They are due %(at)s.") % {"at": write.moment(due)}


def _many_context(
    request: HttpRequest, status: QueueStatus, form: ManyForm | None, *, batch: Batch | None = None, wrong: str = ""
) -> dict[str, Any]:
    first = [
        {
            "line": entry.line,
            "priority": write.priority_short(entry.priority),
            "value": write.preview(entry.value),
            "size": entry.size,
        }
        for entry in _some(batch)
    ]
    return about(
        request,
        status,
        form=form,
        when_form=form,
        when_fields={},
        units=list(UNITS),
        zones=ZONES,
        batch=batch,
        bad=[(_place(bad.first, bad.line), write.visible(bad.reason)) for bad in batch.bad] if batch else [],
        first=first,
        text="",
        now=datetime.now(UTC),
        max_file=uploads.MAX_FILE,
        form_number=once.number(request, f"push-many:{status.id}"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    line: int
    priority: Any
    value: bytes
    size: int


def _some(batch: Batch | None) -> list[_Sample]:
    entries = () if batch is None or not batch.good else batch.entries[:5]
    return [_Sample(line=e.line, priority=e.priority, value=e.value, size=len(e.value)) for e in entries]


def _place(first: int, last: int) -> str:
    if first == last:
        return _("line %(n)s") % {"n": write.number(first)}
    return _("lines %(first)s to %(last)s") % {"first": write.number(first), "last": write.number(last)}
