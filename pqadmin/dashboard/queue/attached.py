"""Attaches and detaches queues that other programs write."""

import contextlib
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.accounts.roles import Right
from pqadmin.dashboard.queue.forms import AttachForm, DetachForm
from pqadmin.display import prefixes
from pqadmin.display.addresses import queue_url
from pqadmin.display.redaction import rules_of
from pqadmin.pages import toasts
from pqadmin.pages.action_view import ActionView, QueueActionView
from pqadmin.pages.queue_context import PREVIEW_BYTES
from pqadmin.store import get_store
from queues import Queue, Transaction
from queues.errors import NotAttached, QueueError, StoreError, display_name


class _LookedOnly(Exception):
    """Undoes an attachment that was made only to look."""


class AttachView(ActionView):
    """Shows what lies under a prefix and, once that is confirmed, attaches it."""

    # For admins: it opens any subspace of the store to reading and taking.
    right = Right.ADMIN
    action = "attach"
    template_name = "dashboard/attach.html"
    form_class = AttachForm

    @classmethod
    def previews(cls, request: HttpRequest) -> bool:
        """Say whether the form asks only what lies under the prefix."""
        return request.POST.get("step") != "attach"

    def preview(self, form: AttachForm) -> HttpResponse:
        """Show what would be attached."""
        if not form.is_valid():
            return self.form_invalid(form)
        try:
            return self.show(form, preview=_look_under(form.cleaned_data["name"], **form.asked))
        except (QueueError, StoreError) as error:
            return self.refused(form, error)

    def perform(self, form: AttachForm) -> str:
        """Attach the prefix."""
        queue = self.actions.attach(form.cleaned_data["name"], **form.asked)
        toasts.done(self.request, _("Attached. Other programs notice nothing; the items are being counted."))
        return self.answer_of(queue)

    def answer_of(self, result: Queue) -> str:
        """Return the queue's page."""
        return queue_url(result.name)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        return super().get_context_data(site_rules=rules_of(()), **more)


def _look_under(name: str, **asked: Any) -> dict[str, Any]:
    """Return what would be attached, by all rules of attaching, changing nothing."""
    found: dict[str, Any] = {}

    def look(tr: Transaction) -> None:
        queue = get_store().attach(name, **asked, tr=tr)
        prefix = queue.config.prefix or b""
        ends = [queue.items(end=end, limit=1, preview=PREVIEW_BYTES, tr=tr).items for end in ("min", "max")]
        first, last = (items[0] if items else None for items in ends)
        found.update(prefix=prefix, as_tuple=prefixes.as_tuple(prefix), first=first, last=last)
        # An end's key is not one of the recipe's: another kind or another prefix may be meant.
        found["foreign"] = any(each is not None and each.foreign and not each.foreign.recipe for each in (first, last))
        raise _LookedOnly

    with contextlib.suppress(_LookedOnly):
        get_store().transact(look)
    return found


class DetachView(QueueActionView):
    """Forgets an attached queue; its items stay where they are."""

    action, title = "detach", gettext_lazy("Detach")
    fragment_name = "dashboard/_detach.html"
    form_class = DetachForm
    unavailable_name = "dashboard/_not_attached.html"

    def unavailable(self) -> Exception | None:
        """Only attached queues are detached."""
        words = _("“%(queue)s” is this store's own queue, nothing attached.")
        return None if self.status.attached else NotAttached(words % {"queue": display_name(self.name)})

    def perform(self, form: DetachForm) -> str:
        """Detach the queue."""
        self.actions.detach(self.name, expect_id=self.queue_id, reason=form.cleaned_data["reason"])
        text = _("Detached %(queue)s. Its items stay where they are.") % {"queue": display_name(self.name)}
        toasts.done(self.request, text)
        return self.answer_of(None)

    def answer_of(self, result: Any) -> str:
        """Return the overview: the queue is gone."""
        return reverse("dashboard:overview")
