"""The board at one moment as one scope sees it, with derived values computed once."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Self, TypeVar, cast

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
    """Return the part of a scope that decides what it sees; equal parts share one overview."""
    if scope.everything:
        return EVERYTHING
    return Scope.of_globs(glob for glob, role in scope.grants if role.has(Right.READ))


#: A queue's row before and now; None: it had none, or has none any more.
Pair = tuple[Row | None, Row | None]
#: Updates a derived value by the rows that differ.
Carry = Callable[[T, Sequence[Pair]], T]


@dataclass(slots=True)
class _Kept:
    """A derived value, how the next overview updates it, and whether it was used."""

    value: Any
    carry: Carry[Any] | None
    asked: bool


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Every queue in sight as last known, sorted by name; never changes once made."""

    snapshot_version: int
    at: datetime
    rows: Sequence[Row]
    summary: Summary
    #: The sums of the groups, where they were kept up to date.
    group_sums: Mapping[str, Summary] | None = None
    _kept: dict[Hashable, _Kept] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def groups(self) -> Mapping[str, Summary]:
        """Return the sums of the groups, by label."""
        return groups_of(self.rows, now=self.at) if self.group_sums is None else self.group_sums

    @property
    def groups_asked(self) -> bool:
        """Return whether the groups were used."""
        return "groups" in self.__dict__

    @cached_property
    def nothing(self) -> Summary:
        """Return the sum of a group that is not there."""
        return total_of((), queues=0, as_of=self.at)

    def keep(self, key: Hashable, make: Callable[[], T], *, carry: Carry[T] | None = None) -> T:
        """Return the derived value of this key, computed once: orders and filters that many pages need.

        With `carry` the next overview has it as well, as long as each of them is asked for it.
        """
        found = self._kept.get(key)
        if found is None:
            found = _Kept(make(), carry, asked=True)
            if len(self._kept) < _MAX_KEPT:
                self._kept[key] = found
        found.asked = True
        return cast(T, found.value)

    def follow(self, last: Self, pairs: Sequence[Pair]) -> None:
        """Take over the derived values of the last overview, updated by the rows that differ."""
        for key, kept in tuple(last._kept.items()):
            if kept.asked and kept.carry is not None:
                value = kept.carry(kept.value, pairs) if pairs else kept.value
                self._kept[key] = _Kept(value, kept.carry, asked=False)
