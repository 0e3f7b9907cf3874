"""Push one item, at once or later, from a template or like another. An answer is a redirect: a reload sends nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.items.views import look_at
from pqadmin.dashboard.push import templates
from pqadmin.dashboard.push.forms import PushForm
from pqadmin.display import format as write
from pqadmin.display import items
from pqadmin.display.addresses import item_url, leave, queue_url
from pqadmin.display.moments import UNITS
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import NotJSON, hidden, parse_json
from pqadmin.pages import act_view, once, toasts
from pqadmin.pages.queue_context import about, status_of
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.store import get_store
from queues import Item, QueueStatus
from queues.errors import QueueError, QueueNotFound, StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the fields of a fresh form come from: an item, a template, or nothing."""

    fields: Mapping[str, str]
    words: str = ""
    #: Why nothing came of it; empty: it did.
    wrong: str = ""
    link: str = ""


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT, harmless=lambda request: "check" in request.POST)
@act_view.seeing_queue
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
        return act_view.answer(request, "dashboard/push.html", context, refusal=act_view.invalid(form))
    try:
        with once.once(request, f"push:{status.id}") as sending:
            pushed = (
                get_store()
                .actions(request.user.get_username())
                .push_undoably(name, [(form.payload, form.parsed_priority)], delay=form.span, due=form.moment)
            )
            sending.answer = queue_url(name)
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, queue_url(name))
    except once.FormRefused:
        return act_view.answer(request, "dashboard/push.html", context, refusal=act_view.stale_form())
    except (QueueError, StoreError) as error:
        if isinstance(error, QueueNotFound):
            raise
        refusal = explain(error)
        act_view.blame(form, refusal)
        return act_view.answer(request, "dashboard/push.html", context, refusal=refusal)
    item = pushed.items[0]
    toasts.undoable(
        request,
        _pushed(item, status.kind == "fifo"),
        pushed.trash_id,
        link=item_url(name, item.id),
        link_label=_("Look at it"),
    )
    return leave(queue_url(name))


def form_of(request: HttpRequest, status: QueueStatus) -> PushForm:
    """Return the form of one item as it was sent."""
    return PushForm(
        request.POST, fifo=status.kind == "fifo", priority_type=status.priority_type, attached=status.attached
    )


def _pushed(item: Item, fifo: bool) -> str:
    values = {
        "size": write.size(item.size),
        "priority": items.priority_short(item),
        "due": write.moment_with_utc(item.due_at),
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
        templates=templates.of(status.id),
        form_number=once.number(request, f"push:{status.id}"),
    )


def _source(request: HttpRequest, status: QueueStatus) -> Source:
    if like := request.GET.get("like", "")[:25_000]:
        return _like(status, like)
    if template := request.GET.get("template", "")[:20]:
        found = templates.get(status.id, template)
        if found is None:
            return Source(fields={}, wrong=_("This template is not there any more."))
        # An empty zone is UTC, for whoever opens it.
        fields = {**found.fields, "zone": found.fields.get("zone") or "UTC"}
        return Source(fields=fields, words=_("From the template “%(name)s”.") % {"name": write.visible(found.name)})
    return Source(fields={})


def _like(status: QueueStatus, item_id: str) -> Source:
    """Fill the form with an item's value and priority; one that hides something is not handed out by this door."""
    status, item = look_at(status.name, item_id)
    if item is None:
        return Source(fields={}, wrong=_("The item to duplicate is not here any more. Nothing was filled in."))
    link = item_url(status.name, item.id)
    if hidden(item.raw, rules_of(status.redact)):
        wrong = _("Parts of this item's value are hidden: reveal it on its page, and copy what you need from there.")
        return Source(fields={}, wrong=wrong, link=link)
    fields = {"priority": "" if item.priority is None else str(item.priority)} | _typed(item.raw)
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
    wrong = templates.keep(status.id, status.name, name, form, by=request.user.get_username())
    context = context_of(request, status, form) | {"template_name": name[:200], "template_wrong": wrong}
    for field in list(form.errors):
        del form.errors[field]
    if wrong:
        refusal = Refusal(title=_("The template was not kept"), text=wrong, advice="", status=422)
        return act_view.answer(request, "dashboard/push.html", context, refusal=refusal)
    kept = _("Kept as the template “%(name)s”. Nothing was pushed.") % {"name": write.visible(name.strip())}
    return render(request, "dashboard/push.html", context | {"kept": kept, "template_name": ""})


@require_POST
@require(Right.ACT)
@act_view.seeing_queue
def forget_template(request: HttpRequest, name: str, number: str) -> HttpResponse:
    """Delete a template."""
    status = status_of(name)
    if templates.forget(status.id, status.name, number, by=request.user.get_username()):
        toasts.done(request, _("The template is deleted. Nothing else was changed."))
    else:
        toasts.failed(request, _("This template is not there any more."))
    return leave(f"{queue_url(name)}push/")


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
