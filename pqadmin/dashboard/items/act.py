"""Acts on items, one or a selection: one page for each, the form with what it would do, and its answer with an undo.

What a form shows goes with it: the queue's id, and of each item a mark. An item that was taken or changed meanwhile
stops the act; the page then says what became of which, and offers the act on those that are as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.items import act_words as words
from pqadmin.dashboard.items import selection, uncovering
from pqadmin.dashboard.items.act_forms import ActForm, LeaseForm, MoveForm, ReprioritizeForm, RescheduleForm
from pqadmin.dashboard.items.act_previews import preview_of
from pqadmin.dashboard.items.act_words import ITEM_ACTS, ItemAct
from pqadmin.dashboard.jobs.on_queue import jobs_here
from pqadmin.display.addresses import item_url, leave, queue_url
from pqadmin.display.values import show
from pqadmin.pages import act_view, once, toasts, visibility
from pqadmin.pages.queue_context import about
from pqadmin.pages.refusals import NoTarget, Refusal, explain
from pqadmin.store import get_store, store_now
from queues import Actions, QueueStatus, ReadTransaction
from queues.admin import Picked, Selection
from queues.errors import BadPriority, NotForAttached, QueueError, QueueNotFound, StoreError

#: Items that are listed on the page of an act on many.
_LISTED = 12
#: Names of queues that are offered to move to.
_OFFERED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an act did."""

    count: int
    trash_id: str | None
    #: Where the one item can be looked at, if it was one and is somewhere.
    url: str = ""
    #: What is said of it; empty: in the words of the act.
    text: str = ""
    #: Items that are dead now.
    died: int = 0


def _acts(request: HttpRequest) -> Actions:
    return get_store().actions(request.user.get_username())


def _sent(request: HttpRequest) -> bool:
    """Say whether this is a confirmed form, not a selection or a form that is still filled in."""
    return request.method == "POST" and once.FIELD in request.POST and "preview" not in request.POST


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT, harmless=lambda request: not _sent(request))
@act_view.seeing_queue
def act(request: HttpRequest, name: str) -> HttpResponse:
    """Show the form of an act on items and, once it is confirmed, do it."""
    data = request.POST if request.method == "POST" else request.GET
    verb = data.get("act", "")
    chosen = ITEM_ACTS.get("delete" if verb == "delete_dead" else verb)
    if chosen is None:
        return _turn_away(request, _("This site knows no such act on items."), queue_url(name))
    sent = _sent(request)
    queue_id = act_view.made_for(request, _purpose(chosen)) if sent else 0
    ids = selection.wanted(data)
    if not ids:
        return _turn_away(request, _("No item was selected: tick one first."), _back(request, name, data))
    try:
        status, found = _look(request, name, ids)
    except QueueNotFound:
        raise
    except (QueueError, StoreError) as error:
        refusal = explain(error)
        return _turn_away(request, f"{refusal.title}: {refusal.text}", queue_url(name))
    page = _Page(request=request, chosen=chosen, status=status, found=found, data=data)
    if status.attached and not chosen.attached:
        refusal = explain(NotForAttached(status.name, words.why_not_attached(chosen)))
        return act_view.answer(request, "dashboard/act.html", page.context(None), refusal=refusal)
    if chosen.single and len(ids) > 1:
        return act_view.answer(request, "dashboard/act.html", page.context(None, too_many=True), refusal=_too_many())
    if not sent:
        return _show(page)
    return _send(page, queue_id)


def _turn_away(request: HttpRequest, text: str, url: str) -> HttpResponse:
    """Say on another page why there is no form."""
    toasts.failed(request, text)
    if "HX-Request" in request.headers:  # a whole page has no place inside another: go to it instead
        return HttpResponse(headers={"HX-Redirect": url})
    return leave(url) if request.method == "POST" else redirect(url)


def _too_many() -> Refusal:
    return Refusal(
        title=_("This act takes one item at a time"),
        text=_("More than one was selected. Nothing was changed."),
        advice=_("Select one of them."),
        status=422,
    )


def leasing_fields(request: HttpRequest, status: QueueStatus, item_id: str, end: str) -> dict[str, str]:
    """Return the hidden fields of a form that leases an item at an end, as it stands now; none if it is gone."""
    chosen = ITEM_ACTS["lease"]
    found = _acts(request).pick(status.name, [item_id], expect_id=status.id)
    if not found.picked:
        return {}
    return {
        "act": chosen.verb,
        "end": end,
        **act_view.form_fields(request, _purpose(chosen), status),
        **selection.hidden_fields(found.picked),
    }


def _purpose(chosen: ItemAct) -> str:
    return f"items-{chosen.verb}"


def _look(request: HttpRequest, name: str, ids: Sequence[str]) -> tuple[QueueStatus, Selection]:
    """Read a queue and items of it at one version."""
    acts = _acts(request)

    def look(tr: ReadTransaction) -> tuple[QueueStatus, Selection]:
        queue = get_store().queue(name, tr=tr)
        return queue.status(tr=tr, preview=64), acts.pick(name, ids, tr=tr)

    with get_store().suggesting():
        return get_store().read(look)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """One request for an act on items."""

    request: HttpRequest
    chosen: ItemAct
    status: QueueStatus
    found: Selection
    data: QueryDict

    @property
    def fit(self) -> list[Picked]:
        """The items that the act is for."""
        user = self.request.user.get_username()
        return [each for each in self.found.picked if words.why_not(self.chosen, each.item, user) is None]

    def _most_attempts(self) -> int | None:
        """After how many attempts an item dies, where the act is one that gives it back."""
        return get_store().queue(self.status.name).config.max_attempts if self.chosen.verb == "release" else None

    def form(self, *, typed: bool) -> ActForm:
        """The act's form, with what was typed into it."""
        data = self.data if typed else None
        if self.chosen.verb == "move":
            return MoveForm(data)
        if self.chosen.verb == "reprioritize":
            fifo = self.status.kind == "fifo"
            return ReprioritizeForm(data, fifo=fifo, priority_type=self.status.priority_type)
        if self.chosen.verb in ("reschedule", "delay"):
            return RescheduleForm(data)
        if self.chosen.verb == "lease":
            return LeaseForm(data)
        return ActForm(data)

    def context(self, form: ActForm | None, **more: Any) -> dict[str, Any]:
        """What the page of the act shows."""
        fit, items = self.fit, [each.item for each in self.found.picked]
        one = fit[0].item if len(fit) == 1 else None
        user = self.request.user.get_username()
        unfit = words.unfit(self.chosen, items, user)
        context = about(self.request, self.status)
        return context | {
            "chosen": self.chosen,
            "title": words.title(self.chosen, len(fit), fifo=self.status.kind == "fifo"),
            "consequence": words.consequence(
                self.chosen,
                [each.item for each in fit],
                fifo=self.status.kind == "fifo",
                max_attempts=self._most_attempts(),
            ),
            "button": words.button(self.chosen, len(fit), fifo=self.status.kind == "fifo"),
            "form": form,
            "typed": form if form is not None and form.is_bound else None,
            "count": len(fit),
            "item": one,
            "item_address": "" if one is None else item_url(self.status.name, one.id),
            "shown": None if one is None else show(one.raw, codec=one.codec, rules=context["rules"]),
            "listed": [each.item for each in fit[:_LISTED]],
            "unlisted": max(0, len(fit) - _LISTED),
            "states": selection.states([each.item for each in fit]),
            "unfit": unfit,
            "missing": _missing(self.found.missing, visibility.scope(self.request)),
            "hidden": {
                "act": self.chosen.verb,
                "back": _back(self.request, self.status.name, self.data),
                **act_view.form_fields(self.request, _purpose(self.chosen), self.status),
                **selection.hidden_fields(fit),
            },
            "back": _back(self.request, self.status.name, self.data),
            "queues": visibility.names(self.request, Right.ACT, but=self.status.name, limit=_OFFERED)
            if self.chosen.verb == "move"
            else (),
            "holds": words.holds(),
            "end": self.data.get("end", "min"),
            "here": jobs_here(self.request, self.status.id),
            "now": store_now(),
            **more,
        }


def _missing(ids: Sequence[str], may: Scope) -> Mapping[str, Any] | None:
    if not ids:
        return None
    told = [
        selection.Fate(item_id=each, text=(said := selection.gone_words(each, may))[0], url=said[1]) for each in ids[:8]
    ]
    return {"fates": selection.Fates(gone=len(ids), changed=0, told=tuple(told))}


def _show(page: _Page) -> HttpResponse:
    request = page.request
    previewing = request.method == "POST" and "preview" in request.POST
    form = page.form(typed=previewing)
    context = page.context(form)
    if previewing:
        form.is_valid()
        context["preview"] = preview_of(
            form, page.status, [each.item for each in page.fit], request, asked=request.POST["preview"]
        )
    target = request.headers.get("HX-Target")
    template = {"div#act": "dashboard/_act.html", "div#act-preview": "dashboard/_act_preview.html"}.get(target or "")
    status = 200 if page.fit or target else 409
    return render(request, template or "dashboard/act.html", context, status=status)


def _send(page: _Page, queue_id: int) -> HttpResponse:
    request, chosen, name = page.request, page.chosen, page.status.name
    form = page.form(typed=True)
    seen = selection.marks(page.data, page.found)
    if not form.is_valid():
        return act_view.answer(request, "dashboard/act.html", page.context(form), refusal=act_view.invalid(form))
    if seen is None:
        return act_view.answer(request, "dashboard/act.html", page.context(form), refusal=act_view.stale_form())
    back, done = _back(request, name, page.data), list[Done]()

    def do() -> str:
        done.append(_do(chosen, request, name, seen, form, queue_id))
        return _answer(page, done[0], back)

    refused = _in_field(form, lambda: act_view.act_once(request, _purpose(chosen), page.status, queue_id, do))
    if refused is not None:
        return _refused(page, form, refused, seen)
    _tell(page, form, done[0])
    return leave(_answer(page, done[0], back))


def _in_field(form: ActForm, act: Callable[[], Refusal | None]) -> Refusal | None:
    refused = act()
    if refused is not None:
        act_view.blame(form, refused)
    return refused


def _refused(page: _Page, form: ActForm, refused: Refusal, seen: Mapping[str, str]) -> HttpResponse:
    """Show the form again, with the items as they are now and what became of the others."""
    request = page.request
    status, found = _look(request, page.status.name, list(seen))
    fates = selection.fates(status.name, seen, found, page.data, visibility.scope(request))
    changed = bool(fates.gone or fates.changed)
    if changed and found.picked:
        # Offered again are those that are as they were shown; whoever changed the others has acted since.
        found = Selection(
            picked=tuple(each for each in found.picked if seen.get(each.item.id) == each.etag), missing=()
        )
    elif changed:
        found = Selection(picked=(), missing=())
    again = _Page(request=request, chosen=page.chosen, status=status, found=found, data=page.data)
    more = {"missing": {"fates": fates}} if changed else {}
    context = again.context(form, **more)
    return act_view.answer(request, "dashboard/act.html", context, refusal=refused)


def _do(
    chosen: ItemAct, request: HttpRequest, name: str, seen: Mapping[str, str], form: ActForm, queue_id: int
) -> Done:
    acts, ids, arguments = _acts(request), list(seen), form.arguments
    if len(ids) == 1 and chosen.verb == "delete":
        popped = acts.delete_item(name, ids[0], expect_id=queue_id, expect=seen[ids[0]], **arguments)
        return Done(count=1, trash_id=popped.trash_id)
    if chosen.verb == "ack":
        popped = acts.ack(name, ids[0], expect_id=queue_id, expect=seen[ids[0]], **arguments)
        return Done(count=1, trash_id=popped.trash_id)
    if chosen.verb == "lease":
        lease = acts.lease(name, expect=ids[0], etag=seen[ids[0]], expect_id=queue_id, **arguments)
        return Done(count=1, trash_id=None, url=item_url(name, ids[0]), text=words.held(lease))
    if chosen.verb == "move" and isinstance(form, MoveForm):
        return _move(request, name, seen, form, queue_id)
    verbs: dict[str, Callable[..., Any]] = {
        "delete": acts.delete_items,
        "reprioritize": acts.reprioritize,
        "promote": acts.promote,
        "reschedule": acts.reschedule,
        "delay": acts.delay,
        "retry": acts.retry_dead,
        "release": acts.release,
    }
    changed = verbs[chosen.verb](name, ids, expect_id=queue_id, expect=seen, **arguments)
    stays = len(ids) == 1 and chosen.verb != "delete"
    url = item_url(name, ids[0]) if stays else ""
    return Done(count=changed.count, trash_id=changed.trash_id, url=url, died=changed.died)


def _move(request: HttpRequest, name: str, seen: Mapping[str, str], form: MoveForm, queue_id: int) -> Done:
    acts, to, ids = _acts(request), form.cleaned_data["to"], list(seen)
    try:
        target = visibility.target(request, to)
        priority = form.priority_for(target.priority_type) if target.kind == "priority" else None
        if target.kind == "fifo" and form.cleaned_data.get("priority"):
            raise BadPriority(_("That is a fifo queue: its items have no priority. Leave it empty."))
        reason = uncovering.asked_for(get_store().queue(name), target, form.cleaned_data)
        changed = acts.move_items(name, ids, to, priority=priority, reason=reason, expect_id=queue_id, expect=seen)
    except QueueNotFound as missing:
        if missing.name != to:
            raise
        # The queue of the page is there: it is the other one that nobody finds.
        raise NoTarget(
            QueueNotFound(to, tuple(visibility.scope(request).of_those(missing.suggestions))).words
        ) from None
    one = len(ids) == 1 and not ids[0].startswith("key-") and not target.attached
    return Done(count=changed.count, trash_id=changed.trash_id, url=item_url(to, ids[0]) if one else queue_url(to))


def _answer(page: _Page, done: Done, back: str) -> str:
    """Return where an act leads: to its item while that is here, else to where it was begun."""
    name = page.status.name
    stays = page.chosen.stays and done.url
    if stays:
        return done.url
    return queue_url(name) if back.startswith(f"{queue_url(name)}items/") else back


def _tell(page: _Page, form: ActForm, done: Done) -> None:
    asked = len(selection.wanted(page.data))
    text = done.text or words.done(page.chosen, done.count, asked, form.cleaned_data, died=done.died)
    if page.chosen.verb == "lease":
        toasts.done(page.request, text)
        return
    stays = page.chosen.stays or not done.url
    toasts.undoable(
        page.request,
        text,
        *([] if done.trash_id is None else [done.trash_id]),
        link="" if stays else done.url,
        link_label=_("Look at it") if done.count == 1 and "/items/" in done.url else _("Look there"),
    )


def _back(request: HttpRequest, name: str, data: QueryDict) -> str:
    """Return the page that an act was begun on: this queue's list as it was, or an item of it."""
    here = queue_url(name)
    for text in (data.get("back", ""), request.headers.get("Referer", "")):
        try:
            parts = urlsplit(text[:2_000])
        except ValueError:  # no address at all
            continue
        if parts.path == here or (parts.path.startswith(f"{here}items/") and "/edit/" not in parts.path):
            return f"{parts.path}?{parts.query}" if parts.query else parts.path
    return here
