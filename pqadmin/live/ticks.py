"""Ticks of the monitor, and their frames: made once for all sockets with equal views."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from pqadmin.accounts.scope import Scope
from pqadmin.live import frame_json
from pqadmin.live.board.consistent_cuts import Cut
from pqadmin.live.fast_path import Shared
from pqadmin.live.requests import OVERVIEW

#: The number before all ticks: a socket without a frame needs a whole one.
NEVER = -1
#: Frames that one tick remembers.
_MAX_TOLD = 256


class View(NamedTuple):
    """What a socket looks at."""

    topic: str
    ids: frozenset[int]
    #: The groups with shown sums.
    labels: frozenset[str]
    sight: Scope
    #: The filter of an overview; empty: all queues pass.
    wanted: str = ""

    @property
    def overview(self) -> bool:
        """Whether this is the overview."""
        return self.topic == OVERVIEW


@lru_cache(maxsize=256)
def view_of(topic: str, ids: frozenset[int], labels: frozenset[str], sight: Scope, wanted: str = "") -> View:
    """Return the one view of these queues: comparing a hundred ids takes longer than a frame."""
    return View(topic, ids, labels, sight, wanted)


class Dated(NamedTuple):
    """A JSON text, and the number of the tick since which it is so."""

    text: str
    since: int


class Matches(NamedTuple):
    """The queues that pass a filter, and the number of the tick since which it is so."""

    #: None for a filter that is not followed: one by favorites, or one of too many.
    ids: frozenset[int] | None
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """All that one scope sees, added up."""

    total: Dated
    #: By label, those that are on a screen.
    groups: Mapping[str, Dated]
    standing: frame_json.Standing
    #: By the text of each filter on a screen.
    matches: Mapping[str, Matches] = field(default_factory=dict)


class Told(NamedTuple):
    """A frame but for its beginning, which is each socket's own; `body` is empty when there is nothing to tell."""

    body: bytes
    rows: frozenset[int]
    gone: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What the monitor publishes at once; ticks are numbered."""

    number: int
    cuts: Sequence[Cut]
    #: By what is seen: `sight_of` a scope.
    sums: Mapping[Scope, Sum]
    #: The number of the tick since which each queue on a screen is as it is.
    changed: Mapping[int, int]
    #: The names of queues that were created or renamed since the tick before.
    new: Mapping[int, str] = field(default_factory=dict)
    _told: dict[tuple[View, int, frozenset[int]], Told] = field(default_factory=dict)

    def covering(self, ids: frozenset[int], *, ends: bool) -> Cut | None:
        """Return the cut that holds all of these queues (with their ends). None until the monitor has read them."""
        for cut in self.cuts:
            if ids <= cut.covers and (not ends or all(i in cut.ends or i not in cut.rows for i in ids)):
                return cut
        return None

    def matching(self, view: View) -> frozenset[int] | None:
        """Return the queues that pass the filter of a view. None without one, and while that is not known."""
        total = self.sums.get(view.sight) if view.wanted else None
        matches = None if total is None else total.matches.get(view.wanted)
        return None if matches is None else matches.ids

    def tell(self, view: View, since: int, owed: frozenset[int]) -> Told | None:
        """Return the frame of a view that has everything up to the tick `since`. None until all of it was read.

        Queues that are `owed` are included in any case.
        """
        key = (view, since, owed)
        told = self._told.get(key)
        if told is None:
            told = self._tell(view, since, owed)
            if told is not None and len(self._told) < _MAX_TOLD:
                told = self._told[key] = told._replace(body=Shared(told.body))
        return told

    def _tell(self, view: View, since: int, owed: frozenset[int]) -> Told | None:
        cut, total = self.covering(view.ids, ends=not view.overview), self.sums.get(view.sight)
        if cut is None or total is None or not view.labels <= total.groups.keys():
            return None
        matches = total.matches.get(view.wanted) if view.wanted else None
        if view.wanted and matches is None:
            return None
        changed, full = self.changed, since == NEVER
        wanted = view.ids if full else frozenset(i for i in view.ids if changed.get(i, self.number) > since)
        wanted |= owed
        groups = [
            total.groups[label].text for label in sorted(view.labels) if full or total.groups[label].since > since
        ]
        matched = matches is not None and (full or matches.since > since)
        if not (wanted or full or groups or matched or (view.overview and total.total.since > since)):
            return Told(b"", wanted, wanted)
        everything, sees = view.sight.everything, view.sight.sees
        shown = [i for i in sorted(wanted & view.ids) if i in cut.rows and (everything or sees(cut.names[i]))]
        gone = wanted.difference(shown)
        parts = [
            f',"full":{"true" if full else "false"},"topic":{json.dumps(view.topic)}',
            f',"version":{frame_json.whole_text(cut.version)},"at":{cut.at},"rows":[',
            ",".join([cut.rows[i] for i in shown]),
            '],"gone":[',
            ",".join([f'"{i}"' for i in sorted(gone)]),
            f'],"total":{total.total.text}',
        ]
        if view.labels:
            parts.append(f',"groups":[{",".join(groups)}]')
        if matches is not None and matched:
            parts.append(f',"matches":{_matches_text(matches, view.ids)}')
        if not view.overview and shown and shown[0] in cut.ends:
            parts.append(f',"ends":{cut.ends[shown[0]]}')
        parts.append("}")
        return Told("".join(parts).encode(), frozenset(shown), gone)


def _matches_text(matches: Matches, ids: frozenset[int]) -> str:
    """Return how many queues pass a filter and which of a screen do not."""
    if matches.ids is None:
        return "null"
    out = ",".join([f'"{i}"' for i in sorted(ids - matches.ids)])
    return f'{{"count":{len(matches.ids)},"out":[{out}]}}'
