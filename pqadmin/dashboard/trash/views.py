"""The trash: what actions removed or changed, by which user, and until when it can be restored."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.display import format as write
from pqadmin.display.addresses import item_url, queue_url, referring_page
from pqadmin.display.words import TRASH_ACTS, damage_words, trash_words
from pqadmin.pages import form_idempotency, toasts, visibility
from pqadmin.pages.action_view import ActionView, answer
from pqadmin.pages.filtered_lists import until_something
from pqadmin.pages.refusals import Refusal
from pqadmin.store import get_store, store_now
from queues import TrashEntry, Undone
from queues.errors import ItemGoneOn, QueueError, StoreError, display_name

PAGE = 50


@require_safe
@require(Right.READ)
def trash(request: HttpRequest) -> HttpResponse:
    """Show what can be restored, newest first; of one queue, person or act if asked."""
    asked = {name: request.GET.get(name, "")[:300].replace("\0", "").strip() for name in ("queue", "by", "act")}
    may, kept = visibility.scope(request), {name: value for name, value in asked.items() if value}
    page, paging = until_something(
        request,
        lambda after: get_store().trash.entries(
            queue=kept.get("queue"),
            by=kept.get("by"),
            act=kept.get("act"),
            limit=PAGE,
            after=after,
            visible=None if may.everything else may.sees,
        ),
        kept=kept,
    )
    known = visibility.known_to(may) if page.entries else {}
    context = {
        **paging,
        "section": "trash",
        "asked": asked,
        "filtered": bool(kept),
        "acts": TRASH_ACTS.items(),
        "lines": [_line(request, entry, known) for entry in page.entries],
        "looked": paging["looked"] if may.everything else None,  # what is hidden is not counted either
        "looked_on": not page.certain and (bool(kept) or not may.everything),
        "now": store_now(),
    }
    return render(request, "dashboard/trash.html", context)


def _line(request: HttpRequest, entry: TrashEntry, known: Mapping[int, str]) -> dict[str, Any]:
    if entry.damage:
        return {"entry": entry, "words": trash_words(entry), "damage": damage_words(entry.damage)}
    may = visibility.scope(request)
    number = form_idempotency.number(request, f"restore:{entry.id}") if visibility.may_undo(may, entry, known) else ""
    entry = visibility.seen_trash(may, entry)
    return {
        "entry": entry,
        "words": trash_words(entry),
        "queue_url": "" if entry.what == "queue" else queue_url(entry.queue),
        "to_url": queue_url(entry.to) if entry.to else "",
        "button": _BUTTONS[entry.what],
        "number": number,
    }


_BUTTONS = {"queue": gettext_lazy("Restore"), "item": gettext_lazy("Put back"), "items": gettext_lazy("Undo")}


class RestoreView(ActionView):
    """Undoes what an entry holds: items are where and what they were, a queue is back with everything in it."""

    http_method_names = ["post"]
    action, subject_argument, home_page = "restore", "trash_id", "dashboard:trash"
    entry: TrashEntry

    def perform(self, form: Any) -> str:
        """Undo what the entry holds."""
        self.entry = visibility.undoable(visibility.scope(self.request), self.subject)
        try:
            undone = self.actions.undo(self.entry.id, partial="partial" in self.request.POST)
        except ItemGoneOn as error:
            if self.entry.act != "push" or error.gone == error.total:
                raise
            undone = self.actions.undo(self.entry.id, partial=True)  # of a push what is still there
        if undone.job is None:
            _tell(self.request, self.entry, undone)
        return self.answer_of(undone)

    def answer_of(self, result: Undone) -> str:
        """Return the page of the queue that is as it was, or of its item; or that of the job that undoes the entry."""
        if result.job is not None:
            return reverse("dashboard:job", args=[result.job.id])
        url, page = queue_url(result.queue), referring_page(self.request)
        items = f"{url}items/"
        # The page of an item, not one below it: some of those answer to a form alone.
        of_item = page.startswith(items) and "/" not in page.removeprefix(items).partition("?")[0].rstrip("/")
        return page if of_item else url

    def refused(self, form: Any, error: QueueError | StoreError) -> HttpResponse:
        """Ask about an entry of which some items have gone on since."""
        return self.ask(error) if isinstance(error, ItemGoneOn) else super().refused(form, error)

    def ask(self, error: ItemGoneOn) -> HttpResponse:
        """Say how many items have gone on since, and offer to undo the rest."""
        left = error.total - error.gone
        refusal = Refusal(
            title=_("Some items have gone on since") if left else _("All of these items have gone on since"),
            text=ngettext(
                "%(n)s of %(total)s was popped, moved or changed after this. Nothing was undone.",
                "%(n)s of %(total)s were popped, moved or changed after this. Nothing was undone.",
                error.gone,
            )
            % {"n": write.number(error.gone), "total": write.number(error.total)},
            advice=_("The other items can be put back without them.") if left else "",
        )
        line = _line(self.request, self.entry, visibility.known_to(visibility.scope(self.request)))
        context = {"section": "trash", "line": line, "left": left, "now": store_now(), "refusal": refusal}
        if self.in_sheet:
            context |= {"fragment": "dashboard/_restore.html", "back": referring_page(self.request)}
            return render(self.request, "dashboard/_in_sheet.html", context)
        return answer(self.request, "dashboard/restore.html", context, refusal=refusal)


def _tell(request: HttpRequest, entry: TrashEntry, undone: Undone) -> None:
    name = undone.queue
    if entry.what == "queue":
        toasts.done(request, _("%(queue)s is back with all its items.") % {"queue": display_name(name)})
    elif entry.item is not None:
        link = item_url(name, entry.item.id)
        toasts.done(request, _("Put back in its old place."), label=_("Look at it"), link=link)
    else:
        text = ngettext(
            "Undone: %(n)s item is as it was, where it was.",
            "Undone: %(n)s items are as they were, where they were.",
            undone.count,
        )
        if entry.act == "push":
            text = ngettext(
                "Undone: %(n)s item was taken out again.", "Undone: %(n)s items were taken out again.", undone.count
            )
        text %= {"n": write.number(undone.count)}
        if undone.skipped:
            text += " " + ngettext(
                "%(n)s has gone on since and was left alone.",
                "%(n)s have gone on since and were left alone.",
                undone.skipped,
            ) % {"n": write.number(undone.skipped)}
        toasts.undoable(request, text, *filter(None, [undone.trash_id]))
