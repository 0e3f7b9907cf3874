"""Purge: puts all waiting items of a queue into the trash, after its name was typed.

An own queue is purged in one transaction. Other programs push to an attached queue, so it is purged in chunks.
"""

import time
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from pqadmin.dashboard.queue.actions import EmptyingView
from pqadmin.dashboard.queue.forms import DeleteForm
from pqadmin.display import format as write
from pqadmin.live.board.rows import depth_of
from pqadmin.pages import toasts
from pqadmin.pages.refusals import explain
from queues import Purged
from queues.errors import QueueError, StoreError

#: Seconds after which the purge of an attached queue stops and says how far it came.
PURGE_SECONDS = 20
#: Tells the time for these seconds.
clock = time.monotonic


class PurgeView(EmptyingView):
    """Puts every waiting item of a queue into the trash."""

    action, title = "purge", gettext_lazy("Purge")
    fragment_name = "dashboard/_purge.html"

    @property
    def depth(self) -> int | None:
        """How many items are taken, None while they are counted."""
        totals = self.status.totals
        return depth_of(self.status) if self.status.attached else totals.ready + totals.delayed

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        return super().get_context_data(seconds=PURGE_SECONDS, **more)

    def perform(self, form: DeleteForm) -> str:
        """Purge the queue."""
        confirmed, until = self.confirmed(form), clock() + PURGE_SECONDS
        trash = reverse("dashboard:trash")
        if self.status.attached:
            taken = self.actions.purge_attached(self.name, **confirmed, progress=lambda _count: clock() <= until)
        else:
            taken = self.actions.purge(self.name, **confirmed)
        if taken.finished or taken.count or taken.skipped:
            link = trash if self.status.attached and not taken.trash_ids else ""
            label = _("Look in the trash")
            toasts.undoable(self.request, _words(taken), *taken.trash_ids, link=link, link_label=label)
        else:
            toasts.failed(
                self.request,
                _("Counting the items took too long: nothing was taken. “pqadmin purge” takes them without a limit."),
            )
        return self.url if taken.failure is None else trash


def _words(purged: Purged) -> str:
    """Say how far a purge came; of why it failed not the advice, which would say that nothing was changed."""
    text = ngettext(
        "Purged %(n)s item. It is in the trash.", "Purged %(n)s items. They are in the trash.", purged.count
    ) % {"n": write.number(purged.count)}
    if purged.failure is not None:
        why = _("this site has an error.")
        if isinstance(purged.failure, QueueError | StoreError):
            why = explain(purged.failure).text.rstrip(".") + "."
        words = _("Then it failed: %(why)s The other items are where they were, unless the trash shows them.")
        text += " " + words % {"why": why}
    elif not purged.finished:
        text += " " + _("That took long enough: the other items are where they were. Purge again to go on.")
    if purged.skipped:
        skipped = ngettext(
            "%(n)s item stays: its key is too long to be put back.",
            "%(n)s items stay: their keys are too long to be put back.",
            purged.skipped,
        )
        text += " " + skipped % {"n": write.number(purged.skipped)}
    return text
