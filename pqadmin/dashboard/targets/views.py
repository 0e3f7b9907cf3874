"""Targets by pattern: the list, a form with a preview, removal; and the targets of one queue on its page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from pqadmin.accounts.rights import RightMissing
from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.targets.fields import LABELS, PREFIX, shown_limit, typed_limit
from pqadmin.dashboard.targets.forms import PatternForm
from pqadmin.dashboard.targets.status import Line, lines
from pqadmin.display import format as write
from pqadmin.display.addresses import queue_url
from pqadmin.display.errors import said
from pqadmin.live.monitor import get_monitor
from pqadmin.pages import form_idempotency, toasts, visibility
from pqadmin.pages.action_view import ActionView
from pqadmin.pages.queue_context import about
from pqadmin.store import get_store, store_now
from queues import QueueStatus
from queues.admin import LIMIT_NAMES, UNSET, Limits, TargetRules, average_rates, check_limits, name_pattern
from queues.errors import QueueError, SettingsChanged, StoreError

#: Queues that a preview, and a list of patterns, judges at most; and lines of a preview, and of the times in breach.
MOST_JUDGED, MOST_LINES, MOST_BREACHES = 1_000, 50, 20


@require_safe
@require(Right.READ)
def targets(request: HttpRequest) -> HttpResponse:
    """Show the defaults and all patterns that match a queue of the reader."""
    may, rules, now = visibility.scope(request), get_store().targets.rules(), store_now()
    statuses = _statuses(request)
    judged = {status.name: lines(status, rules, now) for status in statuses[:MOST_JUDGED]}
    can_set = may.role.has(Right.ACT)
    rows = []
    for glob, limits in rules.patterns.items():
        matching = _matching(glob, statuses)
        if not matching and not may.everything:
            continue
        by_it = {status.name: _set_by(glob, judged.get(status.name, ())) for status in matching}
        beyond = [name for name, found in by_it.items() if any(line.beyond for line in found)]
        rows.append(
            {
                "glob": glob,
                "limits": _given(limits),
                "matching": len(matching),
                "beyond": len(beyond),
                "unknown": _unknown(by_it.values()),
                "names": [{"name": name, "url": queue_url(name)} for name in beyond[:3]],
                "hidden": _remove_fields(request, glob) if can_set else {},
            }
        )
    context = {
        "section": "targets",
        "rows": rows,
        "defaults": [
            {"label": LABELS[limit], "value": shown_limit(limit, target.limit)}
            for limit, target in TargetRules(defaults=rules.defaults).resolve("").items()
        ],
        "unreadable": [
            {"glob": glob, "why": said(why), "hidden": _remove_fields(request, glob) if can_set and glob else {}}
            for glob, why in rules.unreadable
            if may.everything
        ],
        **_breaches(judged),
        "can_set": can_set,
        "judged_all": len(statuses) <= MOST_JUDGED,
    }
    return render(request, "dashboard/targets.html", context)


@require_safe
@require(Right.READ)
def queue_targets(request: HttpRequest, name: str) -> HttpResponse:
    """Show the targets of a queue and its values now, for its page that is open; lead any other reader to that page."""
    store = get_store()
    status, rules = store.read(lambda tr: (store.queue(name, tr=tr).status(tr=tr), store.targets.rules(tr=tr)))
    context = {**about(request, status), **standing(status, rules)}
    if "HX-Request" not in request.headers:
        return redirect(f"{context['url']}#targets")
    return render(request, "dashboard/_targets.html", context)


def standing(status: QueueStatus, rules: TargetRules) -> dict[str, Any]:
    """Return what `_targets.html` shows of a queue."""
    now = store_now()
    averages = average_rates(status, rules.targets(status.name, status.limits), now)
    return {
        "targets": [] if status.attached or status.unreadable else lines(status, rules, now),
        "targets_at": now,
        "averages": averages and ["\u00a0·\u00a0".join(map(write.rate, average)) for average in averages],
    }


class _ForAll(ActionView):
    """An action on a pattern, which may match any queue: it takes the right on all of them."""

    section, subject_argument, home_page = "targets", "glob", "dashboard:targets"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Refuse users without the right on some queues."""
        role = visibility.scope(request).role
        if not role.has(Right.ACT):
            raise RightMissing(Right.ACT, role)
        return super().dispatch(request, *args, **kwargs)


class PatternView(_ForAll):
    """Sets the targets of a pattern, after a preview if one is asked for."""

    action, template_name = "targets", "dashboard/targets_form.html"
    form_class = PatternForm
    preview_button = "preview"
    rules: TargetRules

    def load(self) -> None:
        """Read all patterns."""
        self.rules = get_store().targets.rules()
        if self.subject and self.request.method != "POST" and self.subject not in self.rules.patterns:
            raise Http404

    @property
    def now(self) -> Limits:
        """The limits of the pattern as they are now."""
        return self.rules.patterns.get(self.subject, UNSET)

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with."""
        return {**super().get_form_kwargs(), "glob": self.subject, "now": self.now}

    def get_initial(self) -> dict[str, Any]:
        """Suggest a pattern that the address gives."""
        return {"pattern": self.request.GET.get("pattern", "")[:300]}

    def preview(self, form: PatternForm) -> HttpResponse:
        """Show which queues the pattern matches, and what would be beyond its targets now."""
        if not form.is_valid():
            return self.form_invalid(form)
        try:
            limits = check_limits(form.changes)
        except QueueError as error:
            return self.refused(form, error)
        proposed = TargetRules({**self.rules.patterns, form.glob: limits}, self.rules.defaults)
        return self.show(form, preview=_preview(form.glob, proposed, _statuses(self.request)))

    def perform(self, form: PatternForm) -> str:
        """Set the targets."""
        self.actions.set_targets(form.glob, expect=form.expected, reason=form.cleaned_data["reason"], **form.changes)
        toasts.done(self.request, _("Saved the targets of %(pattern)s.") % {"pattern": write.visible(form.glob)})
        return self.home

    def refused(self, form: PatternForm, error: QueueError | StoreError) -> HttpResponse:
        """Show the form again; sent once more, it goes by the targets that are there now."""
        if isinstance(error, SettingsChanged):
            self.load()
            form.expect(self.now)
        return super().refused(form, error)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        glob = self.subject
        return super().get_context_data(
            glob=glob,
            url=reverse("dashboard:edit-targets", args=[glob]) if glob else reverse("dashboard:new-targets"),
            given=_given(self.now),
            **more,
        )


class RemoveView(_ForAll):
    """Removes a pattern with its targets."""

    http_method_names = ["post"]
    action = "remove-targets"

    def perform(self, form: Any) -> str:
        """Remove the pattern, and offer to set it again."""
        before = get_store().targets.patterns().get(self.subject, UNSET)
        self.actions.remove_targets(self.subject)
        again = {f"{PREFIX}{limit}": typed_limit(limit, value) for limit, value in before.given.items()}
        toasts.done(
            self.request,
            _("Removed the targets of %(pattern)s.") % {"pattern": write.visible(self.subject)},
            label=_("Set them again"),
            action=reverse("dashboard:new-targets"),
            fields={
                "pattern": self.subject,
                form_idempotency.FIELD: form_idempotency.number(self.request, "targets"),
                **again,
            },
        )
        return self.home


def _statuses(request: HttpRequest) -> list[QueueStatus]:
    """Return every queue of the reader that can be judged, as last known."""
    monitor = get_monitor()
    monitor.refresh()
    return [row.status for row in monitor.overview(visibility.scope(request)).rows if not row.status.attached]


def _matching(glob: str, statuses: Iterable[QueueStatus]) -> list[QueueStatus]:
    matches = name_pattern((glob,)).fullmatch
    return [status for status in statuses if matches(status.name)]


def _preview(glob: str, proposed: TargetRules, statuses: Sequence[QueueStatus]) -> Mapping[str, Any]:
    """Return which queues a pattern matches, and what is beyond targets that come from it."""
    now, matching = store_now(), _matching(glob, statuses)
    by_it = {status.name: _set_by(glob, lines(status, proposed, now)) for status in matching[:MOST_JUDGED]}
    found = [
        {"name": name, "url": queue_url(name), "lines": beyond}
        for name, judged in by_it.items()
        if (beyond := [line for line in judged if line.beyond])
    ]
    n, unknown = len(matching), _unknown(by_it.values())
    words = ngettext("%(n)s queue matches.", "%(n)s queues match.", n) % {"n": write.number(n)}
    return {
        "words": words,
        "names": [{"name": status.name, "url": queue_url(status.name)} for status in matching[:12]],
        "more": max(0, n - 12),
        "beyond": found[:MOST_LINES],
        "hidden": max(0, len(found) - MOST_LINES),
        "unknown": ngettext(
            "%(n)s queue is not known to be within all of these targets.",
            "%(n)s queues are not known to be within all of these targets.",
            unknown,
        )
        % {"n": write.number(unknown)}
        if unknown
        else "",
        "judged": min(n, MOST_JUDGED) if n > MOST_JUDGED else 0,
    }


def _breaches(judged: Mapping[str, Sequence[Line]]) -> dict[str, Any]:
    """Return the targets that were missed for longest in the last day, and of how many queues a part is unknown."""
    missed = [(name, line) for name, found in judged.items() for line in found if line.day.beyond]
    missed.sort(key=lambda one: (-one[1].day.beyond, one[0]))
    partly = sum(any(line.day.unknown for line in found if line.state != "off") for found in judged.values())
    words = ngettext(
        "Of %(n)s queue a part of these 24 hours is unknown.",
        "Of %(n)s queues a part of these 24 hours is unknown.",
        partly,
    )
    return {
        "breaches": [{"name": name, "url": queue_url(name), "line": line} for name, line in missed[:MOST_BREACHES]],
        "missed": len(missed) if len(missed) > MOST_BREACHES else 0,
        "partly_known": words % {"n": write.number(partly)} if partly else "",
    }


def _set_by(glob: str, found: Iterable[Line]) -> list[Line]:
    return [line for line in found if line.target.pattern == glob]


def _unknown(judged: Iterable[Sequence[Line]]) -> int:
    """Return how many queues are beyond none of their targets, as far as is known, which is not of all."""
    return sum(any(line.unknown for line in found) and not any(line.beyond for line in found) for found in judged)


def _given(limits: Limits) -> list[dict[str, str]]:
    given = limits.given
    return [
        {"label": str(LABELS[limit]), "value": shown_limit(limit, given[limit])}
        for limit in LIMIT_NAMES
        if limit in given
    ]


def _remove_fields(request: HttpRequest, glob: str) -> dict[str, str]:
    return {form_idempotency.FIELD: form_idempotency.number(request, f"{RemoveView.action}:{glob}")}
