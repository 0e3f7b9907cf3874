"""The queues that each scope sees, computed once for every list of all queues.

Read without a lock: sockets ask in their event loop.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import Scope

#: Scopes that are remembered.
_MOST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one scope sees of one list of all queues."""

    directory: Mapping[str, int]
    seen: Sequence[int]
    ids: frozenset[int]


class Sights:
    """What scopes see. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[Scope, Sight] = {}
        self._writing = threading.Lock()

    def of(self, scope: Scope, directory: Mapping[str, int]) -> Sight:
        """Return what a scope, as `sight_of` gives it, sees of this list."""
        known = self._known.get(scope)
        if known is None or known.directory is not directory:
            sees = scope.teller(Right.READ)
            seen = tuple(queue_id for name, queue_id in directory.items() if sees(name))
            known = Sight(directory=directory, seen=seen, ids=frozenset(seen))
            with self._writing:
                self._known.pop(scope, None)
                if len(self._known) >= _MOST:
                    del self._known[next(iter(self._known))]
                self._known[scope] = known
        return known
