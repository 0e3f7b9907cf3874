"""The board at one moment as one scope sees it, with derived values computed once."""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, TypeVar, cast

from pqadmin.accounts.rights import Right, Role
from pqadmin.accounts.scope import Scope
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import Summary, groups_of, total_of

T = TypeVar("T")

#: Derived values that one overview keeps.
_MAX_KEPT = 16

#: The scope that sees every queue.
EVERYTHING = Scope.of(Role.VIEWER)


@lru_cache(maxsize=4096)
def sight_of(scope: Scope) -> Scope:
    """Return the part of a scope that decides what it sees. Equal parts share one overview."""
    if scope.everything:
        return EVERYTHING
    seen = Scope.of_globs(glob for glob, role in scope.grants if role.has(Right.READ))
    return seen.restricted_to(scope.within) if scope.within else seen


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Every queue in sight as last known, sorted by name; never changes once made."""

    snapshot_version: int
    at: datetime
    rows: Sequence[Row]
    summary: Summary
    _kept: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    #: Pages that come together compute a value once, and not each for itself.
    _making: threading.RLock = field(default_factory=threading.RLock, compare=False, repr=False)

    @cached_property
    def groups(self) -> Mapping[str, Summary]:
        """Return the sums of the groups, by label."""
        return groups_of(self.rows, now=self.at)

    @cached_property
    def nothing(self) -> Summary:
        """Return the sum of a group that is not there."""
        return total_of((), queues=0, as_of=self.at)

    def keep(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the derived value of this key, computed once: orders and filters that many pages need."""
        with self._making:
            if key not in self._kept:
                made = make()
                if len(self._kept) >= _MAX_KEPT:
                    return made
                self._kept[key] = made
            return cast(T, self._kept[key])
