"""What a list's address asks for, as a query of the core, and a query as the end of an address."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from django.utils.translation import gettext as _

from pqadmin.dashboard import format as write
from queues import QueueStatus
from queues.errors import BadPriority
from queues.keyspace import STATES
from queues.priority import Priority, parse_priority
from queues.search import MAX_TEXT, Query


class BadAsk(ValueError):
    """The address asks for what can not be; the message says which part."""


def query(params: Mapping[str, str], status: QueueStatus) -> Query:
    """Read a query of one queue; raise `BadAsk`."""
    state = params.get("state", "") or "ready"
    if state not in STATES:
        raise BadAsk(_("Items are ready, delayed, leased or dead, not “%(state)s”.") % {"state": _cut(state)})
    text, item_id = params.get("q", ""), params.get("id", "").strip()
    if len(text) > MAX_TEXT or len(item_id) > MAX_TEXT:
        raise BadAsk(_("One looks for at most %(n)s characters.") % {"n": write.number(MAX_TEXT)})
    return Query(
        state=state,
        text=text,
        item_id=item_id,
        low=_priority(params.get("low", ""), status),
        high=_priority(params.get("high", ""), status),
        since=_moment(params.get("since", "")),
        until=_moment(params.get("until", "")),
    )


def params(asked: Query) -> dict[str, str]:
    """Return what of an address asks for this."""
    named = {
        "state": asked.state,
        "q": asked.text,
        "id": asked.item_id,
        "low": "" if asked.low is None else str(asked.low),
        "high": "" if asked.high is None else str(asked.high),
        "since": "" if asked.since is None else asked.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "until": "" if asked.until is None else asked.until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {name: value for name, value in named.items() if value}


def words(asked: Query) -> list[str]:
    """Say in a few words each what is asked for, beyond the state."""
    said = []
    if asked.text:
        said.append(_("value contains “%(text)s”") % {"text": _cut(asked.text)})
    if asked.item_id:
        said.append(_("id contains %(id)s") % {"id": _cut(asked.item_id)})
    low, high = (None if edge is None else write.priority_short(edge) for edge in (asked.low, asked.high))
    if low is not None and high is not None:
        said.append(
            _("priority %(low)s") % {"low": low}
            if low == high
            else _("priority %(low)s to %(high)s") % {"low": low, "high": high}
        )
    elif low is not None:
        said.append(_("priority %(low)s or larger") % {"low": low})
    elif high is not None:
        said.append(_("priority %(high)s or smaller") % {"high": high})
    if asked.since is not None:
        said.append(_("pushed since %(at)s") % {"at": write.moment(asked.since)})
    if asked.until is not None:
        said.append(_("pushed until %(at)s") % {"at": write.moment(asked.until)})
    return said


def _priority(text: str, status: QueueStatus) -> Priority | None:
    if not text:
        return None
    if status.kind == "fifo":
        raise BadAsk(_("The items of a fifo queue have no priorities."))
    try:
        return parse_priority(text, status.priority_type)
    except BadPriority as error:
        raise BadAsk(write.visible(str(error))) from None


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadAsk(_("“%(text)s” is no date and time.") % {"text": _cut(text)}) from None


def _cut(text: str) -> str:
    return write.shorten(write.visible(text), 80)
