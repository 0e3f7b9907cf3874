"""Editing an item's value: it is saved only over the very value that was seen; a conflict shows both."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.accounts import arming
from pqadmin.dashboard.items.action_forms import EditForm, typed_value
from pqadmin.dashboard.items.views import ItemActionView, ItemGone
from pqadmin.dashboard.push.forms import check
from pqadmin.display import format as write
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import hidden, show
from pqadmin.pages import toasts
from pqadmin.pages.action_view import blame, refuse
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.store import get_store
from queues import Queue, ReadTransaction
from queues.admin import item_digest
from queues.errors import ItemLeased, QueueError, QueueNotFound, StoreError


class EditView(ItemActionView):
    """Shows an item's value in an editor and saves what was typed."""

    action = "edit"
    fragment_name = "dashboard/_edit.html"
    form_class = EditForm
    why_not_attached = gettext_lazy("its items are not edited.")

    @classmethod
    def previews(cls, request: HttpRequest) -> bool:
        """Say whether a form only asks what its typed value is; without one it asks to reveal the item's."""
        return "check" in request.POST and "value" in request.POST

    def read(self, tr: ReadTransaction) -> Queue:
        """Name the item in the title."""
        queue = super().read(tr)
        self.title = _("Edit") + f" …{self.item.id[-10:]}"
        return queue

    def unavailable(self) -> Exception | Refusal | None:
        """Attached queues have no editor; a leased item is its worker's."""
        if self.status.attached or self.item.state != "leased":
            return super().unavailable()
        self.unavailable_name = "dashboard/_edit_leased.html"
        return ItemLeased(_("The item is in a worker’s hands: release the lease first."))

    @property
    def covered(self) -> bool:
        """Whether rules hide parts of the value: it is edited only once it was revealed."""
        return bool(hidden(self.item.raw, rules_of(self.status.redact)))

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the value as it is, unless rules hide parts of it."""
        self.load()
        if self.unavailable() is not None or self.covered:
            return self.show(covered=True)
        return self.open()

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Save what was typed; without that, reveal the value to edit it, which is audited."""
        if "value" in request.POST:
            return super().post(request, *args, **kwargs)
        self.load()
        if self.unavailable() is not None or (self.covered and "reveal" not in request.POST):
            return self.show(covered=True)
        if self.covered:
            arming.demand(request)  # here too: it must not hang on what else the form says
            try:
                self.item = self.actions.reveal(
                    self.name, self.item.id, reason=_("to edit it"), expect_id=self.status.id
                )
            except (QueueError, StoreError) as error:
                return refuse(request, explain(error), self.address)
        return self.open()

    def open(self) -> HttpResponse:
        """Show the value in the editor."""
        text, encoding = typed_value(self.item.raw)
        typed = {"value": text, "encoding": encoding, "digest": self.seal}
        return self.show(EditForm(initial=typed))

    def preview(self, form: EditForm) -> HttpResponse:
        """Say whether what was typed is JSON."""
        checked = check(form.payload)
        if self.request.headers.get("HX-Target") == "div#edit-check":
            return render(self.request, "dashboard/_check.html", {"check": checked})
        return self.show(form, check=checked)

    def perform(self, form: EditForm) -> str:
        """Save the value over the one that was seen."""
        seen = constant_time_compare(self.seal, form.cleaned_data["digest"])
        done = self.actions.edit_item(
            self.name,
            self.item.id,
            form.payload,
            expect=item_digest(self.item.raw) if seen else "-",
            reason=form.cleaned_data["reason"],
            expect_id=self.queue_id,
        )
        if done.trash_id is None:
            toasts.done(self.request, _("Nothing was changed: the value is the same."))
        else:
            size = write.size(len(form.payload))
            toasts.undoable(self.request, _("Saved the value, %(size)s.") % {"size": size}, done.trash_id)
        return self.address

    def refused(self, form: EditForm, error: QueueError | StoreError) -> HttpResponse:
        """Show the form again, and the value that another user saved meanwhile if there is one.

        One with hidden parts has to be revealed first, as it had to be before: not even its seal is handed out.
        """
        if isinstance(error, QueueNotFound):
            return super().refused(form, error)
        refusal = explain(error)
        try:
            self.load()
        except ItemGone:
            return refuse(self.request, refusal, self.address)
        blame(form, refusal)
        if constant_time_compare(self.seal, form.cleaned_data["digest"]):
            return self.show(form, refusal)
        entries = get_store().audit.entries(item=self.item.id, limit=5).entries
        edited = next((entry for entry in entries if entry.verb in ("edit", "undo")), None)
        conflict = {
            "by": _("an unknown user") if edited is None else write.visible(edited.actor),
            "at": "" if edited is None else write.clock(edited.at),
        }
        form.data = {**self.request.POST.dict(), "digest": "" if self.covered else self.seal}
        return self.show(form, refusal, conflict=conflict, covered=self.covered)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        shown = show(self.item.raw, codec=self.item.codec, rules=rules_of(self.status.redact))
        return super().get_context_data(item=self.item, item_address=self.address, shown=shown, **more)

    @property
    def seal(self) -> str:
        """What a page holds of the value that it shows: good for this item and user, and no help in guessing it."""
        seen = f"{self.request.user.pk}:{self.status.id}:{self.item.id}:{item_digest(self.item.raw)}"
        return salted_hmac("pqadmin.edit", seen, algorithm="sha256").hexdigest()[:32]
