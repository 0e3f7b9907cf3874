"""Actions on all items that match: the confirmation with their count, and the beginning of the bulk job."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.accounts.roles import Right
from pqadmin.dashboard.items.bulk_form import BulkForm
from pqadmin.dashboard.items.query import asked, fields_of
from pqadmin.dashboard.jobs.words import JobsHere, job_url, jobs_here, scope_words
from pqadmin.display import format as write
from pqadmin.display.values import what_searchers_see
from pqadmin.display.words import item_state_word
from pqadmin.pages import exposed_values, visibility
from pqadmin.pages.action_view import QueueActionView
from pqadmin.pages.refusals import Refusal
from pqadmin.store import get_store, store_now
from queues import Job, Query, Queue, ReadTransaction
from queues.admin import BULK_ACTIONS, SURVEY_SCAN, Survey, survey_matches
from queues.errors import DepthChanged, display_name

#: Queues that are suggested as targets.
_TARGETS = 300


class BulkView(QueueActionView):
    """Shows what an action on all matching items would change and, once that is confirmed, begins its bulk job."""

    action, title = "bulk", gettext_lazy("All that match")
    fragment_name = "dashboard/_bulk.html"
    form_class = BulkForm
    why_not_attached = gettext_lazy("its items are moved and deleted by pages, or purged.")
    act: str
    query: Query
    wrong: Mapping[str, str]
    here: JobsHere
    counted: Survey | None = None

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        """Count for pages only: a form that is sent is counted against what its page showed."""
        super().setup(request, *args, **kwargs)
        self.counting = request.method != "POST"

    def read(self, tr: ReadTransaction) -> Queue:
        """Read what is asked for; count it for a page."""
        queue = super().read(tr)
        found = asked(self.request.GET, self.status)
        self.query, self.wrong = found.query, found.wrong
        acts, act = BULK_ACTIONS[self.query.state], self.request.GET.get("act", "")
        self.act = act if act in acts else acts[0]
        self.here = jobs_here(self.request, self.status.id, tr=tr)
        self.counted = None
        if self.counting and self.unavailable() is None:
            self.counted = _count(queue, self.query, tr=tr)
        return queue

    def show(self, form: Any = None, refusal: Refusal | None = None, **more: Any) -> HttpResponse:
        """Render the form with the count of now."""
        if not self.counting:
            self.counting = True
            self.load()
        return super().show(form, refusal, **more)

    def unavailable(self) -> Exception | Refusal | None:
        """Attached queues have no bulk jobs; a search with mistakes is not begun on other items than were meant."""
        if self.status.attached or not self.wrong:
            return super().unavailable()
        self.unavailable_name = "dashboard/_to_queue.html"
        text = " ".join(dict.fromkeys(self.wrong.values()))
        return Refusal(title=_("This cannot be looked for"), text=text, advice="", status=422)

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with."""
        moves = self.act == "move"
        names = visibility.names(self.request, Right.ACT, but=self.name, limit=_TARGETS) if moves else []
        return {
            **super().get_form_kwargs(),
            "act": self.act,
            "status": self.status,
            "state": self.query.state,
            "target": partial(visibility.target, visibility.scope(self.request)),
            "targets": [display_name(name) for name in names],
        }

    def perform(self, form: BulkForm) -> str:
        """Begin the bulk job, if as many items match as its page showed."""
        data, queue = form.cleaned_data, get_store().queue(self.name)
        tolerance = visibility.tolerated(data["count"])
        _recheck(queue, self.query, form, tolerance)
        reason = data["reason"]
        if self.act == "move":
            reason = exposed_values.asked_for(
                queue, visibility.target(visibility.scope(self.request), form.arguments["to"]), data
            )
        job = self.actions.begin_bulk(
            self.act,
            self.name,
            query=self.query,
            reason=reason,
            expect_id=self.queue_id,
            expect_depth=None if self.query.filters else data["count"],
            tolerance=tolerance,
            total=data["count"] if data["ended"] else None,
            concerned=data["count"] if data["ended"] else None,
            **form.arguments,
        )
        return self.answer_of(job)

    def answer_of(self, result: Job) -> str:
        """Return the page of the bulk job."""
        return job_url(result.id)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the confirmation shows."""
        if self.counted is None:
            return super().get_context_data(**more)
        kept, here = fields_of(self.query), f"{self.url}bulk/"
        return super().get_context_data(
            act=self.act,
            acts=[(each, f"{here}?{urlencode({'act': each, **kept})}") for each in BULK_ACTIONS[self.query.state]],
            action=f"{here}?{urlencode({'act': self.act, **kept})}",
            list_url=f"{self.url}?{urlencode(kept)}#items",
            state=item_state_word(self.query.state),
            state_code=self.query.state,
            scope=scope_words(self.query, self.status.redact),
            counted=self.counted,
            here=self.here,
            tolerance=visibility.tolerated(self.counted.matched),
            now=store_now(),
            **more,
        )


def _recheck(queue: Queue, query: Query, form: BulkForm, tolerance: int) -> None:
    """Count again, as far as the page did that was confirmed; raise `DepthChanged` when that is another number."""
    if not query.filters:
        return  # the core compares the counters in the transaction that begins it
    seen, searched = form.cleaned_data["count"], form.cleaned_data["searched"] or 0
    now = _count(queue, query, scan=SURVEY_SCAN if form.cleaned_data["ended"] else max(1, min(searched, SURVEY_SCAN)))
    if now.differs(seen, tolerance):
        raise DepthChanged(
            _("%(now)s items match now, not the %(seen)s you confirmed: nothing was begun.")
            % {"now": write.number(now.matched), "seen": write.number(seen)},
            now.matched,
        )


def _count(queue: Queue, query: Query, *, scan: int = SURVEY_SCAN, tr: ReadTransaction | None = None) -> Survey:
    return survey_matches(
        queue, query, scan=scan, shown=what_searchers_see(queue.config) if query.text else None, tr=tr
    )
