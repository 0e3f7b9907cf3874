"""The audit: actions with user, time, queue, item and reason; on pages and as a file."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import ALL, Scope
from pqadmin.display import format as write
from pqadmin.display.addresses import item_url, queue_url
from pqadmin.display.moments import MAX_ZONE, BadMoment, BadZone, kept_zone, parse_past, write_moment
from pqadmin.display.words import (
    JOB_STATUS,
    TRASH_ACTS,
    VERBS,
    actor_words,
    damage_words,
    detail_value,
    detail_words,
    setting_words,
    verb_words,
)
from pqadmin.files import audit_export as audit_file
from pqadmin.files.entries import Format
from pqadmin.pages import streaming, visibility
from pqadmin.pages.filtered_lists import until_something
from pqadmin.store import get_store, store_now
from queues import AuditEntry, RecordPage
from queues.admin import canonical_name
from queues.errors import BadName, KeyTooLarge, QueueNotFound

PAGE = 50
#: A time as a record of the audit keeps it.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")
#: The id of a bulk job.
_ID = re.compile("[0-9a-f]{40}")
#: Characters of one value of a before or after that are shown.
_MAX_DETAIL = 200
#: Characters of what is read; the id of an attached queue's item is its whole key, and `actor` is `by` too.
_LONGEST = {"queue": 300, "by": 300, "actor": 300, "item": 25_000, "verb": 100, "since": 60, "until": 60}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an address asks of the audit; `kept` is what another address for the very same has to say."""

    typed: Mapping[str, str]
    #: Times are moments, however they were typed.
    kept: Mapping[str, str]
    since: datetime | None
    until: datetime | None
    #: Why nothing can be shown; empty: something can.
    wrong: str
    #: The zone of a moment that is wrong, until it is right; empty: the reader's.
    zone: str


@require_safe
@require(Right.READ)
def audit(request: HttpRequest) -> HttpResponse:
    """Show acts, newest first, of a queue, a person, an item, a verb, a time."""
    asked, may, note = _asked(request), visibility.scope(request), ""
    page: RecordPage[AuditEntry] = RecordPage(entries=(), cursor=None)

    def read(after: str | None) -> RecordPage[AuditEntry]:
        nonlocal note
        found, note = (page, "") if asked.wrong else _page(asked, after, PAGE, may)
        return found

    kept, export = dict(asked.kept), reverse("dashboard:audit-export")
    page, paging = until_something(request, read, kept=kept)
    context = {
        **paging,
        "section": "audit",
        "lines": [line_of(entry) for entry in page.entries],
        "asked": asked.typed,
        "filtered": bool(kept),
        "more_filters": any(kept.get(name) for name in ("item", "since", "until")),
        "verbs": [(verb, words) for verb, words in VERBS.items()],
        "wrong": asked.wrong or paging["wrong"] or note,
        "refused_zone": asked.zone,
        "files": not asked.wrong,
        "looked": paging["looked"] if may == ALL else None,  # what is hidden is not counted either
        "looked_on": not page.certain,
        "kept_days": settings.PQADMIN_AUDIT_DAYS,
        "oldest_at": get_store().audit.oldest_at() if may.everything else None,  # the time of what is hidden is hidden
        "csv_url": f"{export}?{urlencode({**kept, 'format': 'csv'})}",
        "ndjson_url": f"{export}?{urlencode({**kept, 'format': 'ndjson'})}",
    }
    return render(request, "dashboard/audit.html", context)


@require_safe
@require(Right.READ)
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """Hand out all that the page's filters show, as a file."""
    asked = _asked(request)
    if asked.wrong:
        return HttpResponse(asked.wrong, status=400, content_type="text/plain; charset=utf-8")
    may = visibility.scope(request)
    file_format: Format = "csv" if request.GET.get("format") == "csv" else "ndjson"
    return streaming.stream(
        request,
        audit_file.lines(lambda after: _page(asked, after, audit_file.STEP, may)[0], file_format),
        name=streaming.file_name("audit", asked.kept.get("queue", ""), ending=file_format),
        file_format=file_format,
    )


def _asked(request: HttpRequest) -> Asked:
    typed = {name: request.GET.get(name, "")[:most].replace("\0", "").strip() for name, most in _LONGEST.items()}
    actor = typed.pop("actor")
    typed["by"] = typed["by"] or actor
    kept = {name: text for name, text in typed.items() if text}
    times: dict[str, datetime | None] = {"since": None, "until": None}
    wrong, now, zone = "", store_now(), request.GET.get("zone", "")[:MAX_ZONE].replace("\0", "")
    for name in times:
        if name in kept:
            try:
                moment, typed[name] = parse_past(kept[name], now, zone)
                times[name], kept[name] = moment, write_moment(moment)
            except (BadMoment, BadZone) as error:
                wrong = f"“{write.shorten(write.visible(kept[name]), 40)}”: {error}"
    if wrong and zone:
        kept["zone"] = zone
    stays = kept_zone(zone) if wrong else ""
    return Asked(typed=typed, kept=kept, since=times["since"], until=times["until"], wrong=wrong, zone=stays)


def _page(asked: Asked, after: str | None, limit: int, may: Scope) -> tuple[RecordPage[AuditEntry], str]:
    """Read a page of what `may` sees; acts on a queue that has this name no more are found by the name that it had."""
    filters: dict[str, Any] = {
        "actor": None if (by := asked.kept.get("by")) is None else get_store().audit.actor_named(by),
        "item": asked.kept.get("item"),
        "verb": asked.kept.get("verb"),
        "since": asked.since,
        "until": asked.until,
        "limit": limit,
        "after": after,
        "seen": None if may == ALL else partial(visibility.seen_entry, may),
    }
    queue, entries = asked.kept.get("queue"), get_store().audit.entries
    try:
        if queue is not None and not may.sees(canonical_name(queue)):
            raise QueueNotFound(queue)
        return entries(queue=queue, **filters), ""
    except (QueueNotFound, BadName, KeyTooLarge):
        if queue is None:  # a person or an item that fits in no key: there is none of that name
            return RecordPage(entries=(), cursor=None), ""
    note = _("No queue has the name “%(name)s” now: these are the acts on one that had it then.")
    try:
        return entries(named=queue, **filters), note % {"name": write.shorten(write.visible(queue), 100)}
    except KeyTooLarge:
        return RecordPage(entries=(), cursor=None), ""


def line_of(entry: AuditEntry) -> dict[str, Any]:
    """Return an act as the page lists it."""
    to = _moved_to(entry)
    return {
        "entry": entry,
        "verb": verb_words(entry.verb),
        "reason": write.visible(entry.reason),
        "actor": actor_words(entry.actor),
        "damage": damage_words(entry.damage) if entry.damage else "",
        "queue_url": queue_url(entry.queue) if entry.queue else "",
        "item_url": item_url(entry.queue, entry.item) if entry.queue and entry.item else "",
        "job": _job(entry),
        "to": to,
        "to_url": queue_url(to) if to else "",
        "changes": _changes(entry),
    }


def _job(entry: AuditEntry) -> dict[str, str]:
    """Return the address and the state of the bulk job that an act began, or was about; empty for any other."""
    after = entry.after or {}
    job_id, status = after.get("job"), after.get("status", "")
    if not isinstance(job_id, str) or not _ID.fullmatch(job_id):
        return {}
    return {"url": reverse("dashboard:job", args=[job_id]), "word": str(JOB_STATUS.get(status, ""))}


def _moved_to(entry: AuditEntry) -> str:
    """Return the queue that a bulk job moves items to; empty for any other act, and where the reader may not see it."""
    after = entry.after or {}
    return str(after.get("to") or "") if after.get("act") == "move" and _job(entry) else ""


def _changes(entry: AuditEntry) -> list[dict[str, str]]:
    """Return what an act says it found and left, by name."""
    before, after = entry.before or {}, entry.after or {}
    told = ("job", "status", *(["act"] if entry.verb in TRASH_ACTS else ()), *(["to"] if _moved_to(entry) else ()))
    names = [
        name
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name) and not (name in told and _job(entry))
    ]
    return [
        {
            "name": setting_words(name) if entry.verb == "configure" else detail_words(name),
            "before": _plain(name, before.get(name)),
            "after": _plain(name, after.get(name)),
            "changed": "yes" if name in before and name in after else "",
        }
        for name in names
    ]


def _plain(name: str, value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, str) and _TIME.fullmatch(value):
        return write.moment(datetime.fromisoformat(value))
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if name == "size" and isinstance(value, int):
        return write.size(value)
    if isinstance(value, int | float):
        exact = isinstance(value, float) and value.is_integer() and name != "priority"
        return write.priority_short(int(value) if exact else value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(value)
    text = detail_value(name, value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return "\n".join(write.visible(line) for line in write.shorten(text, _MAX_DETAIL).split("\n"))
