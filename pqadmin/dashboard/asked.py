"""What a list's address asks for, as a query of the core, and a query as the end of an address."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _

from pqadmin.dashboard import format as write
from pqadmin.dashboard import looking_for
from queues import QueueStatus
from queues.keyspace import STATES
from queues.search import Query


class BadAsk(ValueError):
    """The address asks for what can not be; the message says which part."""


def query(params: Mapping[str, str], status: QueueStatus) -> Query:
    """Read a query of one queue; raise `BadAsk`."""
    state = params.get("state", "") or "ready"
    if state not in STATES:
        raise BadAsk(_("Items are ready, delayed, leased or dead, not “%(state)s”.") % {"state": _cut(state)})
    found, wrong = looking_for.read(params, status)
    if wrong:
        raise BadAsk(" ".join(wrong.values()))
    return found


def params(asked: Query) -> dict[str, str]:
    """Return what of an address asks for this."""
    return looking_for.fields_of(asked)


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


def _cut(text: str) -> str:
    return write.shorten(write.visible(text), 80)
