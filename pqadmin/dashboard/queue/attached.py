"""Acts on attached queues: attach, detach, purge. Each says what becomes of the items, which are others' as well."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.items.act_forms import ReasonForm
from pqadmin.dashboard.jobs.on_queue import jobs_here
from pqadmin.dashboard.queue.forms import AttachForm, DeleteForm
from pqadmin.display import format as write
from pqadmin.display import prefixes
from pqadmin.display.addresses import leave, queue_url
from pqadmin.display.redaction import rules_of
from pqadmin.live.board.rows import depth_of
from pqadmin.pages import act_view, once, toasts
from pqadmin.pages.queue_context import PREVIEW_BYTES, about, status_of
from pqadmin.pages.refusals import explain
from pqadmin.store import get_store
from queues import Item, Purged, QueueStatus, Transaction
from queues.errors import NotAttached, QueueError, StoreError, display_name

#: Seconds after which a purge stops and says how far it came: nobody waits longer for a page.
PURGE_SECONDS = 20
#: Others may push and take this share of the items, and this many, between the look and the confirmation.
_TOLERATED_SHARE, _TOLERATED = 10, 10
#: Tells the time for these seconds.
clock = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What lies under a prefix: shown before it is attached."""

    prefix: bytes
    as_tuple: str
    escaped: str
    first: Item | None
    last: Item | None

    @property
    def foreign(self) -> bool:
        """Say whether an end's key is not one of the recipe's: another kind or another prefix may be meant."""
        ends = (self.first, self.last)
        return any(item is not None and item.foreign is not None and not item.foreign.recipe for item in ends)


class _LookedOnly(Exception):
    """Undoes an attachment that was made only to look."""


@require_http_methods(["GET", "HEAD", "POST"])
# For admins: it opens any subspace of the store to reading and taking, whoever it belongs to.
@require(Right.ADMIN, harmless=lambda request: request.POST.get("step") != "attach")
def attach(request: HttpRequest) -> HttpResponse:
    """Show what lies under a prefix and, once that is confirmed, attach it."""
    form = AttachForm(request.POST) if request.method == "POST" else None
    context: dict[str, Any] = {
        "section": "queues",
        "form": form,
        "preview": None,
        "site_rules": rules_of(()),
        "form_number": once.number(request, "attach"),
    }
    if form is None:
        return render(request, "dashboard/attach.html", context)
    if not form.is_valid():
        return act_view.answer(request, "dashboard/attach.html", context, refusal=act_view.invalid(form))
    data = form.cleaned_data
    asked = {"prefix": form.parsed_prefix, "kind": data["kind"], "priority_type": data["priority_type"] or "int"}
    try:
        if request.POST.get("step") != "attach":
            context["preview"] = _look_under(data["name"], **asked)
            return render(request, "dashboard/attach.html", context)
        with once.once(request, "attach") as sending:
            queue = get_store().actions(request.user.get_username()).attach(data["name"], **asked)
            sending.answer = queue_url(queue.name)
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, reverse("dashboard:overview"))
    except once.FormRefused:
        return act_view.answer(request, "dashboard/attach.html", context, refusal=act_view.stale_form())
    except (QueueError, StoreError) as error:
        refusal = explain(error)
        act_view.blame(form, refusal)
        return act_view.answer(request, "dashboard/attach.html", context, refusal=refusal)
    toasts.done(request, _("Attached. Other programs notice nothing; the items are being counted."))
    return leave(sending.answer)


def _look_under(name: str, **asked: Any) -> Preview:
    """Return what would be attached, by all rules of attaching, changing nothing."""
    found: list[Preview] = []

    def look(tr: Transaction) -> None:
        queue = get_store().attach(name, **asked, tr=tr)
        prefix = queue.config.prefix or b""
        ends = [queue.items(end=end, limit=1, preview=PREVIEW_BYTES, tr=tr).items for end in ("min", "max")]
        first, last = (items[0] if items else None for items in ends)
        found[:] = [
            Preview(
                prefix=prefix,
                as_tuple=prefixes.as_tuple(prefix),
                escaped=prefixes.escaped(prefix),
                first=first,
                last=last,
            )
        ]
        raise _LookedOnly

    with contextlib.suppress(_LookedOnly):
        get_store().transact(look)
    return found[0]


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@act_view.seeing_queue
def detach(request: HttpRequest, name: str) -> HttpResponse:
    """Forget an attached queue; its items stay where they are."""
    queue_id = act_view.made_for(request, "detach")
    status = status_of(name)
    if not status.attached:
        return _not_attached(request, status)
    form = ReasonForm(request.POST) if request.method == "POST" else None
    context = about(request, status, form=form, hidden=act_view.form_fields(request, "detach", status))
    if form is None:
        return _show(request, "detach", context)
    form.is_valid()

    def act() -> str:
        reason = form.cleaned_data.get("reason", "")
        get_store().actions(request.user.get_username()).detach(name, expect_id=queue_id, reason=reason)
        return reverse("dashboard:overview")

    refused = act_view.act_once(request, "detach", status, queue_id, act)
    if refused is not None:
        return act_view.answer(request, "dashboard/detach.html", context, refusal=refused)
    toasts.done(request, _("Detached %(queue)s. Its items stay where they are.") % {"queue": display_name(name)})
    return leave(reverse("dashboard:overview"))


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@act_view.seeing_queue
def purge(request: HttpRequest, name: str) -> HttpResponse:
    """Take every item of an attached queue into the trash after its name was typed."""
    queue_id = act_view.made_for(request, "purge")
    status = status_of(name)
    if not status.attached:
        return _not_attached(request, status)
    form = DeleteForm(request.POST) if request.method == "POST" else None
    if form is None:
        return _show(request, "purge", _about_purge(request, status, form))
    if not form.is_valid():
        return act_view.answer(
            request, "dashboard/purge.html", _about_purge(request, status, form), refusal=act_view.invalid(form)
        )
    data = form.cleaned_data
    done: list[Purged] = []
    until = clock() + PURGE_SECONDS

    def go_on(_count: int) -> bool:
        return clock() <= until

    def act() -> str:
        done.append(
            get_store()
            .actions(request.user.get_username())
            .purge_attached(
                name,
                confirm=data["confirm"],
                expect_depth=data["depth"],
                tolerance=_tolerance(data["depth"]),
                expect_id=queue_id,
                reason=data["reason"],
                progress=go_on,
            )
        )
        return reverse("dashboard:trash")

    refused = act_view.act_once(request, "purge", status, queue_id, act)
    if refused is not None:
        act_view.blame(form, refused)
        # The number to confirm is the one now.
        context = _about_purge(request, status_of(name), form)
        return act_view.answer(request, "dashboard/purge.html", context, refusal=refused)
    _tell(request, done[0])
    return leave(queue_url(name) if done[0].failure is None else reverse("dashboard:trash"))


def _tell(request: HttpRequest, purged: Purged) -> None:
    if not purged.finished and not purged.count and not purged.skipped:
        toasts.failed(
            request,
            _("Counting the items took too long: nothing was taken. “pqadmin purge” takes them without a limit."),
        )
        return
    text = ngettext(
        "Purged %(n)s item. It is in the trash.", "Purged %(n)s items. They are in the trash.", purged.count
    ) % {"n": write.number(purged.count)}
    if purged.failure is not None:
        text += " " + _("Then it failed: %(why)s The others are where they were, unless the trash shows them.") % {
            "why": _why(purged.failure)
        }
    elif not purged.finished:
        text += " " + _("That took long enough: the others are where they were. Purge again to go on.")
    if purged.skipped:
        skipped = ngettext(
            "%(n)s item stays: its key is too long to be put back.",
            "%(n)s items stay: their keys are too long to be put back.",
            purged.skipped,
        )
        text += " " + skipped % {"n": write.number(purged.skipped)}
    trash = reverse("dashboard:trash")
    if len(purged.trash_ids) != 1:
        toasts.done(request, text, label=_("Look in the trash"), link=trash)
        return
    trash_id = purged.trash_ids[0]
    toasts.done(
        request,
        text,
        label=_("Undo"),
        action=reverse("dashboard:restore", args=[trash_id]),
        fields={once.FIELD: once.number(request, f"restore:{trash_id}")},
    )


def _why(failure: Exception) -> str:
    """Return why a purge failed halfway, without the advice, which would say that nothing was changed."""
    if not isinstance(failure, QueueError | StoreError):
        return _("this site has an error.")
    return str(explain(failure).text).rstrip(".") + "."


def _about_purge(request: HttpRequest, status: QueueStatus, form: DeleteForm | None) -> dict[str, Any]:
    depth = depth_of(status)
    return about(
        request,
        status,
        form=form,
        hidden=act_view.form_fields(request, "purge", status),
        depth=depth,
        tolerance=_tolerance(depth or 0),
        seconds=PURGE_SECONDS,
        here=jobs_here(request, status.id),
    )


def _tolerance(depth: int) -> int:
    return max(_TOLERATED, depth // _TOLERATED_SHARE)


def _not_attached(request: HttpRequest, status: QueueStatus) -> HttpResponse:
    refusal = explain(
        NotAttached(
            _("“%(queue)s” is this store's own queue, nothing attached.") % {"queue": display_name(status.name)}
        )
    )
    return act_view.answer(request, "dashboard/not_attached.html", about(request, status), refusal=refusal)


def _show(request: HttpRequest, act: str, context: dict[str, Any]) -> HttpResponse:
    fragment = request.headers.get("HX-Target") == "div#act"
    return render(request, f"dashboard/_{act}.html" if fragment else f"dashboard/{act}.html", context)
