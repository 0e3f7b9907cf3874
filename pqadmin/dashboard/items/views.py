"""The page of one item: its value in the view that fits, what is known about it, and what can be done with it."""

from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, can, require
from pqadmin.dashboard.items import history
from pqadmin.dashboard.items.action_definitions import buttons
from pqadmin.dashboard.items.action_forms import ActForm
from pqadmin.display import format as write
from pqadmin.display import items
from pqadmin.display.addresses import item_url
from pqadmin.display.redaction import NOTHING, rules_of
from pqadmin.display.values import VIEWS, as_html, hidden, plain, show
from pqadmin.display.words import item_state_word
from pqadmin.pages import form_idempotency, visibility
from pqadmin.pages.action_view import QueueActionView, answer, hidden_fields
from pqadmin.pages.queue_context import PREVIEW_BYTES, about
from pqadmin.pages.refusals import Refusal
from pqadmin.store import get_store, store_now
from queues import Item, Queue, QueueStatus, ReadTransaction
from queues.admin import Neighbors, minted_at, neighbors, parse_item_id


def see(name: str, item_id: str) -> tuple[QueueStatus, Item | None, Neighbors | None]:
    """Read a queue, an item of it, and the neighbors of a ready one at one version; raise `QueueNotFound`."""

    def look(tr: ReadTransaction) -> tuple[QueueStatus, Item | None, Neighbors | None]:
        queue = get_store().queue(name, tr=tr)
        item, status = queue.find(item_id, tr=tr), queue.status(tr=tr, preview=64)
        return status, item, None if item is None else neighbors(queue, item, preview=PREVIEW_BYTES, tr=tr)

    with get_store().suggesting():
        return get_store().read(look)


@never_cache
@require_safe
@require(Right.READ)
def item(request: HttpRequest, name: str, item_id: str) -> HttpResponse:
    """Show an item; one that is gone gets a page that says where it went."""
    status, found, beside = see(name, item_id)
    if found is None:
        return gone(request, status, item_id, code=200)
    return render(request, "dashboard/item.html", _context(request, status, found, beside))


@never_cache
@require_safe
@require(Right.READ)
def download(request: HttpRequest, name: str, item_id: str) -> HttpResponse:
    """Hand out the raw value, or with `as=text` what it decodes to, as a file that no browser runs or displays."""
    status, found, beside = see(name, item_id)
    if found is None:
        return gone(request, status, item_id)
    rules = rules_of(status.redact)
    if request.GET.get("as") == "text":
        return _file(plain(found.raw, rules), f"{found.id[:100]}.txt")
    if hidden(found.raw, rules):
        refusal = Refusal(
            title=_("Parts of this value are redacted"),
            text=_("Its bytes would show them, so they are not handed out like this."),
            advice=_("Reveal it for the download, or download the text, which has marks in their place."),
            status=403,
        )
        return answer(request, "dashboard/item.html", _context(request, status, found, beside), refusal=refusal)
    return _file(found.raw, f"{found.id[:100]}.bin")


class ItemGone(Exception):
    """The item is not in the queue."""


class ItemActionView(QueueActionView):
    """An action on the item that the address names."""

    item: Item

    @property
    def address(self) -> str:
        """The item's page."""
        return item_url(self.name, self.kwargs["item_id"])

    def answer_of(self, result: Any) -> str:
        """Return the item's page."""
        return self.address

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer for an item that is gone."""
        try:
            return super().dispatch(request, *args, **kwargs)
        except ItemGone:
            return gone(request, self.status, kwargs["item_id"])

    def read(self, tr: ReadTransaction) -> Queue:
        """Read the item too."""
        queue = super().read(tr)
        item = queue.find(self.kwargs["item_id"], tr=tr)
        if item is None:
            raise ItemGone
        self.item = item
        return queue


@method_decorator(never_cache, name="dispatch")
class RevealView(ItemActionView):
    """Shows one item with nothing redacted, or hands out its bytes, in this answer alone; it is audited."""

    http_method_names = ["post"]
    action, template_name = "reveal", "dashboard/item.html"
    form_class = ActForm
    beside: Neighbors | None

    def read(self, tr: ReadTransaction) -> Queue:
        """Read the item's neighbors too."""
        queue = super().read(tr)
        self.beside = neighbors(queue, self.item, preview=PREVIEW_BYTES, tr=tr)
        return queue

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the item's page shows."""
        return _context(self.request, self.status, self.item, self.beside) | more

    def perform(self, form: ActForm) -> HttpResponse:
        """Reveal the value."""
        item = self.actions.reveal(self.name, self.item.id, reason=form.cleaned_data["reason"], expect_id=self.queue_id)
        if "download" in self.request.POST:
            return _file(item.raw, f"{item.id[:100]}.bin")
        context = _context(self.request, self.status, item, self.beside, revealed=True)
        return render(self.request, "dashboard/item.html", context)


def gone(request: HttpRequest, status: QueueStatus, item_id: str, *, code: int = 404) -> HttpResponse:
    """Say that the item is not in the queue, and where it went as far as known; `code` where a record tells."""
    may = visibility.scope(request)
    finished = history.finished(status.name, item_id, may)
    where = (
        history.whereabouts(status.id, item_id, may)
        if finished is None
        else history.of_finished(finished, status.redact)
    )
    rand = parse_item_id(item_id)
    told = history.history_of(
        item_id,
        may,
        None if where is None else where.item,
        NOTHING if where is None else rules_of(where.redact),
        queue_id=None if finished is None else status.id,
    )
    context = about(
        request,
        status,
        item_id=write.shorten(write.visible(item_id), 60),
        raw_item_id=item_id[:25_000],
        where=where,
        finished=finished,
        rules=rules_of(status.redact),
        pushed_at=None if rand is None else minted_at(rand),
        restore_number=form_idempotency.number(request, f"restore:{where.trash_id}")
        if where and where.trash_id
        else "",
        history=told,
        last=next(iter(told["lines"]), None),
        item_url=item_url(status.name, quote(item_id[:25_000], safe="")),
        now=store_now(),
    )
    return render(request, "dashboard/gone.html", context, status=404 if finished is None else code)


def _context(
    request: HttpRequest, status: QueueStatus, found: Item, beside: Neighbors | None, *, revealed: bool = False
) -> dict[str, Any]:
    """Return what the page of an item shows; once it is revealed all of it, in the view that a form asks for."""
    everything, rules = revealed or "all" in request.GET, NOTHING if revealed else rules_of(status.redact)
    shown = show(
        found.raw,
        codec=found.codec,
        rules=rules,
        wanted=(request.POST if revealed else request.GET).get("as", ""),
        everything=everything,
    )
    may_act = can(request.user, Right.ACT, status.name)
    told = history.history_of(found.id, visibility.scope(request), found, rules, queue_id=status.id)
    return about(
        request,
        status,
        item=found,
        item_url=item_url(status.name, found.id),
        shown=shown,
        views=[(view, view == shown.view) for view in VIEWS if view in shown.fits],
        exact_priority=as_html(items.priority(found)),
        state_word=item_state_word(found.state),
        shown_all=everything,
        revealed=revealed,
        beside=beside,
        history=told,
        attempts=history.attempts_of(found, rules, told),
        buttons=buttons(status, found, request.user.get_username()) if may_act else (),
        reveal_fields=hidden_fields(request, "reveal", status) if may_act and shown.hides else {},
        now=store_now(),
    )


def _file(data: bytes, name: str) -> HttpResponse:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
    }
    return HttpResponse(data, content_type="application/octet-stream", headers=headers)
