"""The queues that globs match now, as forms show them."""

from collections.abc import Iterable
from typing import Any

from pqadmin.accounts.scope import Scope
from pqadmin.display.addresses import queue_url
from pqadmin.store import get_store
from queues.errors import display_name

#: Names that are shown.
_SHOWN = 12


def matching(glob: str, scope: Scope | None = None, names: Iterable[str] | None = None) -> dict[str, Any] | None:
    """Return how many queues a glob matches and the first ones, with addresses; with a scope, what that sees."""
    glob = glob.strip()
    if not glob or (scope is None and len(glob) > 300):
        return None
    found = (scope or Scope.of_globs([glob])).of_those(get_store().directory() if names is None else names)
    first = [(display_name(name), queue_url(name)) for name in found[:_SHOWN]]
    return {"glob": glob, "count": len(found), "first": first, "more": len(found) - len(first)}
