"""The board at one moment as one scope sees it, with what many askers want of it worked out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, TypeVar, cast

from pqadmin.accounts.rights import Right, Role
from pqadmin.accounts.scope import Scope
from pqadmin.live.rows import Row
from pqadmin.live.sums import Summary, groups_of, total_of

T = TypeVar("T")

#: Worked-out things that one overview remembers.
_MAX_KEPT = 16

#: Who sees every queue.
EVERYTHING = Scope.of(Role.VIEWER)


@lru_cache(maxsize=4096)
def sight_of(scope: Scope) -> Scope:
    """Return what a scope sees, whatever it may do there: equal for all who share one roll-up."""
    if scope.everything:
        return EVERYTHING
    return Scope.of_globs(glob for glob, role in scope.grants if role.has(Right.READ))


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Every queue in sight as last known, sorted by name; never changes once made."""

    snapshot_version: int
    at: datetime
    rows: Sequence[Row]
    summary: Summary
    _kept: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def groups(self) -> Mapping[str, Summary]:
        """Return the sums of the groups, by label."""
        return groups_of(self.rows, now=self.at)

    @cached_property
    def nothing(self) -> Summary:
        """Return the sum of a group that is not there."""
        return total_of((), queues=0, now=self.at)

    def keep(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made under this key before, or make it now: orders and filters that many ask for."""
        found = self._kept.get(key)
        if found is None:
            found = make()
            if len(self._kept) < _MAX_KEPT:
                self._kept[key] = found
        return cast(T, found)
