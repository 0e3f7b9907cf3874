"""The list of dead items by the errors that they died of, as a page shows it."""

from typing import Any
from urllib.parse import urlencode

from pqadmin.dashboard.items.query import Asked, fields_of
from pqadmin.display.addresses import item_url, queue_url
from pqadmin.pages.error_groups import Group, dead_errors
from pqadmin.store import store_now
from queues import Query
from queues.errors import BadCursor

#: Groups that are named.
SHOWN = 20


def links(queue: str, group: Group) -> dict[str, str]:
    """Return where the items of a group are listed, retried and deleted, and where the sample is."""
    url, fields = queue_url(queue), fields_of(Query(state="dead", error=group.error))
    return {
        "items": f"?{urlencode(fields)}#items",
        "sample": item_url(queue, group.sample),
        **{act: f"{url}bulk/?{urlencode({'act': act, **fields})}" for act in ("retry", "delete")},
    }


def shown(queue: str, asked: Asked, after: str | None) -> dict[str, Any] | None:
    """Return what the list of dead items shows of their errors; None where it is not the whole list."""
    if asked.state != "dead" or asked.searching or asked.after is not None:
        return None
    try:
        found = dead_errors(queue, after)
    except BadCursor:  # of an old address
        found = dead_errors(queue)
    if not found.groups:
        return None
    return {
        "rows": [(group, links(queue, group)) for group in found.groups[:SHOWN]],
        "more": len(found.groups) - SHOWN if len(found.groups) > SHOWN else 0,
        # They are read after the list, so that their number may be another one.
        "at": store_now(),
        "begin": found.before + 1,
        "end": found.before + found.looked,
        "next_url": "" if found.cursor is None else asked.address(errors=found.cursor),
    }
