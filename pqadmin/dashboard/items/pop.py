"""Pops the item at one end of a queue, and puts a popped item back."""

from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.dashboard.items.action_forms import PopForm, holds
from pqadmin.dashboard.items.selection import hidden_fields as picked_fields
from pqadmin.display.addresses import item_url
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import show
from pqadmin.pages import toasts, visibility
from pqadmin.pages.action_view import QueueActionView, hidden_fields
from pqadmin.store import get_store
from queues import Item, Popped, Queue, ReadTransaction
from queues.errors import TrashNotFound, display_name


class PopView(QueueActionView):
    """Shows the item at one end and, once that very item is confirmed, pops it."""

    action, title = "pop", gettext_lazy("Pop")
    fragment_name = "dashboard/_pop.html"
    form_class = PopForm
    reads_first = False
    end: str
    item: Item | None
    leasing: dict[str, str]

    def read(self, tr: ReadTransaction) -> Queue:
        """Read the item at the end too, and what a form that leases it instead carries."""
        queue = super().read(tr)
        asked = (self.request.POST if self.request.method == "POST" else self.request.GET).get("end")
        self.end = "max" if asked == "max" and queue.kind != "fifo" else "min"
        items = queue.items(end=self.end, limit=1, tr=tr).items
        self.item = items[0] if items else None
        self.leasing = {}
        if self.item is not None and not queue.attached:
            picked = self.actions.pick(self.name, [self.item.id], tr=tr).picked
            self.leasing = {"act": "lease", "end": self.end, **picked_fields(picked)}
        return queue

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the confirmation shows."""
        item = self.item
        return super().get_context_data(
            end=self.end,
            item=item,
            shown=None
            if self.item is None
            else show(self.item.raw, codec=self.item.codec, rules=rules_of(self.status.redact)),
            leasing=self.leasing and self.leasing | hidden_fields(self.request, "items-lease", self.status),
            holds=holds(),
            **more,
        )

    def perform(self, form: PopForm) -> str:
        """Pop the item that was confirmed."""
        data = form.cleaned_data
        popped = self.actions.pop(self.name, end=data["end"], reason=data["reason"], expect=data["expect"] or "-")
        return self.answer_of(popped)

    def answer_of(self, result: Popped | None) -> str:
        """Return the queue's page, which shows the popped item."""
        return self.url if result is None else f"{self.url}?{urlencode({'taken': result.trash_id})}"


class PutBackView(QueueActionView):
    """Puts a popped item back under its same key."""

    http_method_names = ["post"]
    action, reads_first = "put-back", False

    @property
    def subject(self) -> str:
        """The entry of the trash."""
        return self.request.POST.get("trash_id", "")[:100]

    def perform(self, form: Any) -> str:
        """Put the item back."""
        entry = visibility.undoable(visibility.scope(self.request), self.subject)
        if entry.queue_id != get_store().queue(self.name).id:
            words = _("This item was taken from %(queue)s: put it back there.")
            raise TrashNotFound(words % {"queue": display_name(entry.queue)})
        item = self.actions.undo(self.subject).item
        link = self.url if item is None else item_url(self.name, item.id)
        toasts.done(self.request, _("Put back in its old place."), label=_("Look at it"), link=link)
        return self.url
