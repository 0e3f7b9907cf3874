"""Views of actions on items, one or a selection: the form with what it would do, and the answer with an undo.

A form carries the queue's id and a mark of each item that it shows. An item that was taken or changed meanwhile stops
the action; the page then says which, and offers the action on the rest.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from pqadmin.accounts.roles import Right
from pqadmin.dashboard.items import action_definitions, selection
from pqadmin.dashboard.items.action_definitions import ITEM_ACTS, ItemAct
from pqadmin.dashboard.items.action_forms import ActForm, LeaseForm, MoveForm, ReprioritizeForm, RescheduleForm
from pqadmin.dashboard.items.action_previews import preview_of
from pqadmin.dashboard.jobs.words import JobsHere, jobs_here
from pqadmin.display.addresses import item_url, leave, queue_url
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import show
from pqadmin.pages import exposed_values, form_idempotency, toasts, visibility
from pqadmin.pages.action_view import QueueActionView, blame
from pqadmin.pages.refusals import NoTarget, Refusal, explain
from pqadmin.store import get_store, store_now
from queues import Changed, Queue, ReadTransaction
from queues.admin import Picked, Selection
from queues.errors import NotForAttached, QueueError, QueueNotFound, StoreError

#: Items that are listed on the page of an action on many.
_LISTED = 12
#: Names of queues that are offered to move to.
_OFFERED = 200
_FORMS: dict[str, type[ActForm]] = {
    "move": MoveForm,
    "reprioritize": ReprioritizeForm,
    "reschedule": RescheduleForm,
    "delay": RescheduleForm,
    "lease": LeaseForm,
}


class ItemsActionView(QueueActionView):
    """Shows the form of an action on items and, once it is confirmed, performs it."""

    fragment_name, form_id = "dashboard/_items_action.html", "act"
    found: Selection
    here: JobsHere
    max_attempts: int | None

    @classmethod
    def previews(cls, request: HttpRequest) -> bool:
        """Say whether this is a selection or a form that is still filled in."""
        return form_idempotency.FIELD not in request.POST or "preview" in request.POST

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        """Read which action on which items is meant."""
        super().setup(request, *args, **kwargs)
        self.data: QueryDict = request.POST if request.method == "POST" else request.GET
        self.chosen = ITEM_ACTS.get(self.data.get("act", ""))
        self.ids = selection.wanted(self.data)

    @property
    def act(self) -> ItemAct:
        """The action; `dispatch` answers when there is none."""
        assert self.chosen is not None
        return self.chosen

    @property
    def action(self) -> str:  # type: ignore[override] # each verb has keys of its own
        """The name of the action in request keys."""
        return f"items-{self.act.verb}"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Turn away what is no action on items, with the reason on another page."""
        if self.chosen is None:
            return self.turn_away(_("This site knows no such act on items."), self.url)
        if not self.ids:
            return self.turn_away(_("No item was selected: tick one first."), self.back)
        try:
            return super().dispatch(request, *args, **kwargs)
        except QueueNotFound:
            raise
        except (QueueError, StoreError) as error:
            refusal = explain(error)
            return self.turn_away(f"{refusal.title}: {refusal.text}", self.url)

    def turn_away(self, text: str, url: str) -> HttpResponse:
        """Say on another page why there is no form."""
        toasts.failed(self.request, text)
        if "HX-Request" in self.request.headers:  # a whole page has no place inside another: go to it instead
            return HttpResponse(headers={"HX-Redirect": url})
        return leave(url) if self.request.method == "POST" else redirect(url)

    def read(self, tr: ReadTransaction) -> Queue:
        """Read the items and the bulk jobs of the queue too."""
        queue = super().read(tr)
        self.chosen = action_definitions.in_fifo(self.act) if queue.kind == "fifo" else self.act
        self.found = self.actions.pick(self.name, self.ids, tr=tr)
        self.here = jobs_here(self.request, self.status.id, tr=tr)
        self.max_attempts = queue.config.max_attempts
        return queue

    def unavailable(self) -> Exception | Refusal | None:
        """Attached queues have fewer actions; some actions are for one item."""
        if self.status.attached and not self.act.attached:
            return NotForAttached(self.name, str(self.act.not_attached))
        if not self.act.single or len(self.ids) == 1:
            return None
        self.unavailable_name = "dashboard/_back.html"
        return Refusal(
            title=_("This act takes one item at a time"),
            text=_("More than one was selected. Nothing was changed."),
            advice=_("Select one of them."),
            status=422,
        )

    # The form

    def get_form_class(self) -> type[ActForm]:
        """Return the form of the action."""
        return _FORMS.get(self.act.verb, ActForm)

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with: what was typed, not a selection that was sent."""
        kwargs = super().get_form_kwargs()
        if self.previews(self.request) and "preview" not in self.request.POST:
            kwargs = {name: value for name, value in kwargs.items() if name not in ("data", "files")}
        fifo = self.status.kind == "fifo"
        if self.act.verb == "reprioritize":
            kwargs |= {"fifo": fifo, "priority_type": self.status.priority_type}
        elif self.act.verb == "move":
            names = visibility.names(self.request, Right.ACT, but=self.name, limit=_OFFERED)
            kwargs |= {"fifo": fifo, "targets": names}
        elif self.act.verb == "lease":
            kwargs["initial"] = {"end": self.data.get("end", "min")}
        return kwargs

    @property
    def fit(self) -> list[Picked]:
        """The items that the action is for."""
        return [
            each for each in self.found.picked if action_definitions.why_not(self.act, each.item, self.username) is None
        ]

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page of the action shows."""
        fit = self.fit
        items = [each.item for each in fit]
        one = items[0] if len(items) == 1 else None
        context = {
            "chosen": self.act,
            "consequence": action_definitions.consequence(self.act, items, max_attempts=self.max_attempts),
            "button": action_definitions.counted(self.act.button, len(fit)),
            "count": len(fit),
            "item": one,
            "item_address": "" if one is None else item_url(self.name, one.id),
            "shown": None if one is None else show(one.raw, codec=one.codec, rules=rules_of(self.status.redact)),
            "listed": items[:_LISTED],
            "unlisted": max(0, len(fit) - _LISTED),
            "states": selection.states(items),
            "unfit": action_definitions.unfit(self.act, [each.item for each in self.found.picked], self.username),
            "fates": self.fates(dict.fromkeys(self.found.missing, "")),
            "back": self.back,
            "here": self.here,
            "now": store_now(),
        }
        return super().get_context_data(**context | more)

    @property
    def hidden(self) -> Mapping[str, str]:
        """The hidden fields of a new form, with the items that it shows."""
        return {
            "act": self.act.verb,
            "back": self.back,
            **super().hidden,
            **selection.hidden_fields(self.fit),
        }

    def show(self, form: Any = None, refusal: Refusal | None = None, **more: Any) -> HttpResponse:
        """Render the form; a page without any item to act on is a conflict."""
        self.title = action_definitions.counted(self.act.title, len(self.fit))
        response = super().show(form, refusal, **more)
        if response.status_code == 200 and not self.fit and "HX-Target" not in self.request.headers:
            response.status_code = 409
        return response

    def preview(self, form: ActForm) -> HttpResponse:
        """Show what the action would do, if that was asked."""
        if not form.is_bound:
            return self.show(form)
        items, asked = [each.item for each in self.fit], self.request.POST["preview"]
        preview = preview_of(form, self.status, items, self.request, asked=asked)
        if self.request.headers.get("HX-Target") == "div#act-preview":
            return render(self.request, "dashboard/_act_preview.html", {"preview": preview})
        return self.show(form, preview=preview)

    # The action

    def perform(self, form: ActForm) -> str:
        """Perform the action on the items as they were shown."""
        seen = selection.marks(self.data, self.found)
        if seen is None:
            raise form_idempotency.FormRefused
        link = ""
        if isinstance(form, MoveForm):
            changed, link = self.move(form, seen)
        else:
            changed = self.change(form, seen)
            link = item_url(self.name, self.ids[0]) if self.in_sheet and self.act.stays and len(self.ids) == 1 else ""
        one = changed.count == 1 and "/items/" in link
        toasts.undoable(
            self.request,
            action_definitions.done(self.act, changed, len(seen), form.cleaned_data),
            *filter(None, [changed.trash_id]),
            link=link,
            link_label=_("Look at it") if one else _("Look there"),
        )
        return self.answer_of(None)

    def answer_of(self, result: Any) -> str:
        """Return the page of the one item that stays in the queue, or the page that the action was begun on."""
        if self.act.stays and len(self.ids) == 1 and not self.in_sheet:
            return item_url(self.name, self.ids[0])
        return self.url if self.back.startswith(f"{self.url}items/") else self.back

    def change(self, form: ActForm, seen: Mapping[str, str]) -> Changed:
        """Perform an action other than a move."""
        actions, ids, verb, arguments = self.actions, list(seen), self.act.verb, form.arguments
        arguments |= {"expect_id": self.queue_id}
        if len(ids) == 1 and verb in ("delete", "ack"):
            take = actions.ack if verb == "ack" else actions.delete_item
            taken = take(self.name, ids[0], expect=seen[ids[0]], **arguments)
            return Changed(count=1, skipped=0, trash_id=taken.trash_id)
        if verb == "lease":
            lease = actions.lease(self.name, expect=ids[0], etag=seen[ids[0]], **arguments)
            form.cleaned_data["held_until"] = lease and lease.expires_at
            return Changed(count=1, skipped=0, trash_id=None)
        change: Callable[..., Changed] = {
            "delete": actions.delete_items,
            "reprioritize": actions.reprioritize,
            "promote": actions.promote,
            "reschedule": actions.reschedule,
            "delay": actions.delay,
            "retry": actions.retry_dead,
            "release": actions.release,
        }[verb]
        return change(self.name, ids, expect=seen, **arguments)

    def move(self, form: MoveForm, seen: Mapping[str, str]) -> tuple[Changed, str]:
        """Move the items, if the user may act on the other queue; return where they are too."""
        to, ids = form.cleaned_data["to"], list(seen)
        try:
            target = visibility.target(visibility.scope(self.request), to)
            priority = form.priority_for(target)
            reason = exposed_values.asked_for(get_store().queue(self.name), target, form.cleaned_data)
            changed = self.actions.move_items(
                self.name, ids, to, priority=priority, reason=reason, expect_id=self.queue_id, expect=seen
            )
        except QueueNotFound as missing:
            if missing.name != to:
                raise
            # The queue of the page is there: it is the other one that was not found.
            suggestions = visibility.scope(self.request).of_those(missing.suggestions)
            raise NoTarget(QueueNotFound(to, tuple(suggestions)).words) from None
        one = len(ids) == 1 and not ids[0].startswith("key-") and not target.attached
        return changed, item_url(to, ids[0]) if one else queue_url(to)

    def refused(self, form: Any, error: QueueError | StoreError) -> HttpResponse:
        """Show the form again for the items that are as they were shown, and what happened to the rest."""
        seen = selection.marks(self.data, self.found)
        if seen is None or isinstance(error, QueueNotFound):
            return super().refused(form, error)
        self.load()
        fates = self.fates(seen)
        if fates is not None:
            same = [each for each in self.found.picked if seen.get(each.item.id) == each.etag]
            self.found = Selection(picked=tuple(same), missing=())
        refusal = explain(error)
        blame(form, refusal)
        return self.show(form, refusal, fates=fates)

    def fates(self, seen: Mapping[str, str]) -> selection.Fates | None:
        """Return what happened to items since a form showed them; None if they are as they were."""
        return selection.fates(
            self.name, seen, self.found, self.data, visibility.scope(self.request), total=len(self.ids)
        )

    @property
    def back(self) -> str:
        """The page that the action was begun on: this queue's list as it was, or an item of it."""
        for text in (self.data.get("back", ""), self.request.headers.get("Referer", "")):
            try:
                parts = urlsplit(text[:2_000])
            except ValueError:  # no address at all
                continue
            path, here = unquote(parts.path), unquote(self.url)  # browsers may escape more of it than pages do
            if path == here or (path.startswith(f"{here}items/") and "/edit/" not in path):
                address = f"{self.url}{path.removeprefix(here)}"
                return f"{address}?{parts.query}" if parts.query else address
        return self.url
