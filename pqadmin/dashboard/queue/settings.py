"""The settings of a queue, and the acts on the whole of it gathered in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from pqadmin.accounts.roles import Right, can, require
from pqadmin.dashboard.items import uncovering
from pqadmin.dashboard.queue.settings_form import SettingsForm, seen_of, typed_of
from pqadmin.display import format as write
from pqadmin.display.addresses import leave, queue_url
from pqadmin.display.words import setting_words
from pqadmin.pages import act_view, toasts
from pqadmin.pages.queue_context import PREVIEW_BYTES, about
from pqadmin.pages.refusals import Refusal
from pqadmin.store import get_store
from queues import AuditEntry, Queue, QueueStatus, ReadTransaction
from queues.admin import MAX_NOTE, MAX_RULE, MAX_RULES, SETTING_NAMES, settings_of
from queues.errors import BadSetting, SettingsChanged

#: How far back it is looked for who changed a setting.
_LOOK_BACK = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """A setting that somebody else changed while the form was open."""

    name: str
    words: str
    before: str
    after: str
    by: str
    at: str
    #: The reader of the form had changed it too.
    both: bool


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ACT)
@act_view.seeing_queue
def settings(request: HttpRequest, name: str) -> HttpResponse:
    """Show the settings of a queue and change them."""
    queue_id = act_view.made_for(request, "settings")
    queue, status = _look(name)
    if request.method != "POST":
        return render(request, "dashboard/settings.html", _context(request, queue, status, None))
    form = SettingsForm(request.POST, attached=queue.attached)
    if not form.is_valid():
        context = _context(request, queue, status, form, typed=_typed(form))
        return act_view.answer(request, "dashboard/settings.html", context, refusal=act_view.invalid(form))
    refusal = _lifting(request, form, status)
    if refusal is not None:
        act_view.blame(form, refusal)
        context = _context(request, queue, status, form, typed=_typed(form))
        return act_view.answer(request, "dashboard/settings.html", context, refusal=refusal)
    conflict: list[SettingsChanged] = []
    wrong: list[BadSetting] = []

    def act() -> str:
        acts = get_store().actions(request.user.get_username())
        try:
            acts.configure(
                name,
                expect=form.expected,
                expect_id=queue_id,
                reason=form.cleaned_data["reason"],
                **form.changes,
            )
        except SettingsChanged as error:
            conflict.append(error)
            raise
        except BadSetting as error:
            wrong.append(error)
            raise
        return f"{queue_url(name)}settings/"

    refused = act_view.act_once(request, "settings", status, queue_id, act)
    if refused is not None:
        if conflict:
            return _merge(request, name, form, conflict[0])
        if wrong and wrong[0].name in form.fields:
            form.add_error(wrong[0].name, refused.text)
        context = _context(request, queue, status, form, typed=_typed(form))
        return act_view.answer(request, "dashboard/settings.html", context, refusal=refused)
    if form.changes:
        changed = ", ".join(setting_words(changed) for changed in SETTING_NAMES if changed in form.changes)
        toasts.done(request, _("Saved: %(settings)s.") % {"settings": changed})
    else:
        toasts.done(request, _("Nothing was different: nothing was changed."))
    return leave(f"{queue_url(name)}settings/")


def _look(name: str) -> tuple[Queue, QueueStatus]:
    def look(tr: ReadTransaction) -> tuple[Queue, QueueStatus]:
        queue = get_store().queue(name, tr=tr)
        return queue, queue.status(tr=tr, preview=PREVIEW_BYTES)

    with get_store().suggesting():
        return get_store().read(look)


def _lifting(request: HttpRequest, form: SettingsForm, status: QueueStatus) -> Refusal | None:
    """Refuse to lift rules of redaction for everybody to whom only adding them is given."""
    if "redact" not in form.changes or can(request.user, Right.ADMIN):
        return None
    # What the form says it saw as well: the act goes on only where that is what stands there by then.
    seen = form.expected.get("redact")
    before = (*status.redact, *map(str, seen if isinstance(seen, list) else ()))
    rules = uncovering.lifted(before, form.changes["redact"])
    if not rules:
        return None
    return Refusal(
        title=_("Only an admin lifts rules of redaction"),
        text=_("Values would become visible to everybody by this: %(rules)s. Nothing was saved.")
        % {"rules": uncovering.in_words(rules)},
        advice=_(
            "Keep every rule that is there as it is written, and add none with “!”. Revealing one value stays yours."
        ),
        status=403,
        field="redact",
    )


def _merge(request: HttpRequest, name: str, form: SettingsForm, conflict: SettingsChanged) -> HttpResponse:
    """Show the form again: his own where he changed something, theirs elsewhere, and who changed what."""
    queue, status = _look(name)
    now = typed_of(settings_of(queue.config))
    typed = _typed(form)
    merged = {each: typed[each] if each in form.changes else now[each] for each in form.names}
    meanwhile = _meanwhile(queue, conflict.changed, form.changes)
    context = _context(request, queue, status, form, typed=merged | {"reason": typed["reason"]}, meanwhile=meanwhile)
    refusal = Refusal(
        title=_("Somebody else changed these settings meanwhile"),
        text=_("Nothing of yours was saved yet."),
        advice=_("The form below holds your changes and theirs. Look at it and save again."),
    )
    return act_view.answer(request, "dashboard/settings.html", context, refusal=refusal)


def _meanwhile(
    queue: Queue, changed: Mapping[str, tuple[object, object]], mine: Mapping[str, object]
) -> list[Meanwhile]:
    entries = get_store().audit.entries(queue=queue.name, limit=_LOOK_BACK).entries
    found = []
    for name, (seen, now) in changed.items():
        entry = _last(entries, name)
        found.append(
            Meanwhile(
                name=name,
                words=setting_words(name),
                before=_shown(seen),
                after=_shown(now),
                by="" if entry is None else write.visible(entry.actor),
                at="" if entry is None else write.clock(entry.at),
                both=name in mine,
            )
        )
    return found


def _last(entries: tuple[AuditEntry, ...], name: str) -> AuditEntry | None:
    return next((e for e in entries if e.verb == "configure" and e.after is not None and name in e.after), None)


def _shown(value: object) -> str:
    """Write a setting for people, on one line."""
    if value in ("", None, (), []):
        return _("nothing")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, int):
        return write.number(value)
    if isinstance(value, tuple | list):
        return write.shorten(write.visible(", ".join(map(str, value))), 120)
    return write.shorten(write.visible(str(value)), 120)


def _typed(form: SettingsForm) -> dict[str, Any]:
    return {name: form[name].value() or "" for name in form.fields if name != "seen"}


def _context(
    request: HttpRequest,
    queue: Queue,
    status: QueueStatus,
    form: SettingsForm | None,
    *,
    typed: Mapping[str, Any] | None = None,
    meanwhile: list[Meanwhile] | None = None,
) -> dict[str, Any]:
    config = queue.config
    # A form that was refused goes on comparing with what its reader saw; one that was merged with what is now.
    seen = seen_of(config) if form is None or meanwhile else request.POST.get("seen", "")
    return about(
        request,
        status,
        config=config,
        form=form,
        typed=typed_of(settings_of(config)) if typed is None else typed,
        seen=seen,
        hidden=act_view.form_fields(request, "settings", status),
        own=not config.attached,
        meanwhile=meanwhile or [],
        touched={each.name for each in meanwhile or []},
        edges=", ".join(write.visible(write.priority(edge)) for edge in config.edges),
        limits={"note": MAX_NOTE, "rules": MAX_RULES, "rule": MAX_RULE},
    )
