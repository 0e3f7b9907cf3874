"""Editing an item's value: it is saved only over the very value that was seen; a conflict shows both."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from pqadmin.accounts import arming
from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.items.act_forms import EditForm, typed_value
from pqadmin.dashboard.items.views import gone, look_at
from pqadmin.display import format as write
from pqadmin.display.addresses import item_url, leave
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import NotJSON, hidden, parse_json, show
from pqadmin.pages import act_view, once, toasts
from pqadmin.pages.queue_context import about
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.store import get_store
from queues import Changed, Item, QueueStatus
from queues.admin import item_digest
from queues.errors import ItemLeased, NotForAttached, QueueError, StoreError


def _checks(request: HttpRequest) -> bool:
    """Say whether a form only asks what its typed value is; without one it asks to reveal the item's."""
    return "check" in request.POST and "value" in request.POST


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT, harmless=_checks)
@act_view.seeing_queue
def edit(request: HttpRequest, name: str, item_id: str) -> HttpResponse:
    """Show an item's value in an editor and save what was typed."""
    saving = request.method == "POST" and once.FIELD in request.POST and not _checks(request)
    queue_id = act_view.made_for(request, "edit") if saving else 0
    status, item = look_at(name, item_id)
    if item is None:
        return gone(request, status, item_id)
    refusal = _refused(status, item)
    if refusal is not None:
        return act_view.answer(request, "dashboard/edit.html", about(request, status, item=item), refusal=refusal)
    form = EditForm(request.POST) if request.method == "POST" and "value" in request.POST else None
    if form is None:
        return _open(request, status, item)
    if not form.is_valid() and saving:
        return act_view.answer(
            request, "dashboard/edit.html", _typed(request, status, item, form), refusal=act_view.invalid(form)
        )
    if not saving:
        context = _typed(request, status, item, form) | {"check": check(form.payload)}
        fragment = request.headers.get("HX-Target") == "div#edit-check"
        return render(request, "dashboard/_check.html" if fragment else "dashboard/edit.html", context)
    return _save(request, status, item, form, queue_id)


def _refused(status: QueueStatus, item: Item) -> Refusal | None:
    if status.attached:
        return explain(NotForAttached(status.name, _("its items are not edited.")))
    if item.state == "leased":
        return explain(ItemLeased(_("The item is in a worker’s hands: release the lease first.")))
    return None


def _open(request: HttpRequest, status: QueueStatus, item: Item) -> HttpResponse:
    """Show the value as it is; a redacted one only to whoever asks for it by name, which is audited."""
    if hidden(item.raw, rules_of(status.redact)):
        if request.method != "POST" or "reveal" not in request.POST:
            return render(request, "dashboard/edit.html", _context(request, status, item) | {"covered": True})
        arming.demand(request)  # here too: it must not hang on what else the form says
        try:
            item = (
                get_store()
                .actions(request.user.get_username())
                .reveal(status.name, item.id, reason=_("to edit it"), expect_id=status.id)
            )
        except (QueueError, StoreError) as error:
            return act_view.refuse(request, explain(error), item_url(status.name, item.id))
    text, encoding = typed_value(item.raw)
    context = _context(request, status, item) | {"digest": _seal(request, status, item)}
    return render(request, "dashboard/edit.html", context | {"text": text, "encoding": encoding})


def _save(request: HttpRequest, status: QueueStatus, item: Item, form: EditForm, queue_id: int) -> HttpResponse:
    changed: list[Changed] = []
    address = item_url(status.name, item.id)
    expect = item_digest(item.raw) if _is_seal(request, status, item, form.cleaned_data["digest"]) else "-"

    def act() -> str:
        changed.append(
            get_store()
            .actions(request.user.get_username())
            .edit_item(
                status.name,
                item.id,
                form.payload,
                expect=expect,
                reason=form.cleaned_data["reason"],
                expect_id=queue_id,
            )
        )
        return address

    refused = act_view.act_once(request, "edit", status, queue_id, act)
    if refused is not None:
        status, now = look_at(status.name, item.id)
        if now is None:
            return act_view.refuse(request, refused, address)
        act_view.blame(form, refused)
        context = _typed(request, status, now, form)
        if not _is_seal(request, status, now, form.cleaned_data["digest"]):
            context |= _conflict(request, status, now)
        return act_view.answer(request, "dashboard/edit.html", context, refusal=refused)
    done = changed[0]
    if done.trash_id is None:
        toasts.done(request, _("Nothing was changed: the value is the same."))
    else:
        size = write.size(len(form.payload))
        toasts.undoable(request, _("Saved the value, %(size)s.") % {"size": size}, done.trash_id)
    return leave(address)


def _conflict(request: HttpRequest, status: QueueStatus, now: Item) -> dict[str, Any]:
    """Show the value that somebody else saved; sending again saves over that one.

    One with hidden parts has to be revealed first, as it had to be before: not even its seal is handed out.
    """
    entries = get_store().audit.entries(item=now.id, limit=5).entries
    edited = next((entry for entry in entries if entry.verb in ("edit", "undo")), None)
    by = _("somebody") if edited is None else write.visible(edited.actor)
    at = "" if edited is None else write.clock(edited.at)
    rules = rules_of(status.redact)
    conflict = {"by": by, "at": at, "shown": show(now.raw, codec=now.codec, rules=rules)}
    if hidden(now.raw, rules):
        return {"conflict": conflict, "covered": True, "digest": ""}
    return {"conflict": conflict, "digest": _seal(request, status, now)}


def _typed(request: HttpRequest, status: QueueStatus, item: Item, form: EditForm) -> dict[str, Any]:
    return _context(request, status, item) | {
        "form": form,
        "text": form["value"].value() or "",
        "encoding": form["encoding"].value() or "text",
        "digest": form["digest"].value() or "",
    }


def _context(request: HttpRequest, status: QueueStatus, item: Item) -> dict[str, Any]:
    context = about(
        request,
        status,
        item=item,
        item_address=item_url(status.name, item.id),
        hidden=act_view.form_fields(request, "edit", status),
    )
    return context | {"shown": show(item.raw, codec=item.codec, rules=context["rules"])}


def _seal(request: HttpRequest, status: QueueStatus, item: Item) -> str:
    """Return what a page holds of the value it shows: good for this item and person, and nothing to guess by."""
    seen = f"{request.user.pk}:{status.id}:{item.id}:{item_digest(item.raw)}"
    return salted_hmac("pqadmin.edit", seen, algorithm="sha256").hexdigest()[:32]


def _is_seal(request: HttpRequest, status: QueueStatus, item: Item, text: str) -> bool:
    """Say whether this is the seal of the value as it is."""
    return constant_time_compare(_seal(request, status, item), text)


def check(payload: bytes) -> dict[str, Any]:
    """Say whether bytes are JSON, how many they are, and what is wrong where."""
    size = write.size(len(payload))
    try:
        parse_json(payload.decode("utf-8"))
    except NotJSON as error:
        return {"good": False, "text": str(error), "size": size}
    except UnicodeDecodeError:
        return {"good": False, "text": _("These bytes are no text, so no JSON."), "size": size}
    return {"good": True, "text": _("This is JSON."), "size": size}
