"""Pushes of many callers in one transaction: what is ready at once goes in together, in the order of the calls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import NamedTuple

from queues import limits, ready
from queues.config import Config
from queues.errors import QueueFull, ValueTooLarge
from queues.item import Item
from queues.kv.port import ReadTransaction, Refused, Transact, Transaction
from queues.priority import Priority
from queues.queue_keys import QueueKeys
from queues.tally import Tally

#: Bytes of values of one batch; one push alone may have more.
BATCH_BYTES = 1_000_000


_Values = Sequence[tuple[bytes, Priority | None]]


class Push(NamedTuple):
    """Values that one caller pushes as one, each with its priority and its id."""

    values: _Values
    rands: Sequence[bytes]


#: Of a push.
_values, _rands = itemgetter(0), itemgetter(1)


class Pushes:
    """The server of a queue's pushes."""

    contended = False

    def __init__(self, keys: QueueKeys, current: Callable[[ReadTransaction], Config]) -> None:
        self._keys = keys
        self._current = current

    def serve(self, tr: Transaction, requests: Sequence[Push]) -> Sequence[list[Item] | Refused]:
        """Push as much as fits together; one push alone raises what there is to refuse.

        Where a limit of items holds, each push is measured by what those before it have written.
        """
        config = self._current(tr)
        together, values = _together(requests[:1] if config.max_depth is not None else requests)
        refused = self._refused(tr, config, together, alone=len(requests) == 1)
        admitted = [push for at, push in enumerate(together) if at not in refused] if refused else together
        pushed = self._insert(tr, config, admitted, _values_of(admitted) if refused else values) if admitted else []
        if len(together) == 1 and admitted:
            return [pushed]
        if not refused and len(pushed) == len(together):  # one of each
            return list(map(list, zip(pushed, strict=True)))
        items = iter(pushed)
        return [refused.get(at) or list(islice(items, len(push.values))) for at, push in enumerate(together)]

    def _refused(
        self, tr: Transaction, config: Config, together: Sequence[Push], *, alone: bool
    ) -> Mapping[int, Refused]:
        """Return which of these pushes may not come in, and why."""
        if not config.limited:
            limits.admit(tr, self._keys, config, ())
            return {}
        refused = {}
        for at, push in enumerate(together):
            try:
                limits.admit(tr, self._keys, config, (len(value) for value, _ in push.values))
            except (QueueFull, ValueTooLarge) as error:
                if alone:
                    raise
                refused[at] = Refused(error)
        return refused

    def _insert(self, tr: Transaction, config: Config, pushes: Sequence[Push], values: _Values) -> list[Item]:
        rands = pushes[0].rands if len(pushes) == 1 else list(chain.from_iterable(map(_rands, pushes)))
        tally = Tally(self._keys, wake=True)
        items = ready.insert(tr, self._keys, config, values, rands, tally)
        tally.apply(tr)
        return items

    def conduct(self, transact: Transact, requests: Sequence[Push]) -> Sequence[list[Item] | Refused]:
        """Serve a batch in one transaction."""
        answers: Sequence[list[Item] | Refused] = transact(lambda tr: self.serve(tr, requests))
        return answers


def _together(requests: Sequence[Push]) -> tuple[Sequence[Push], _Values]:
    """Return the first pushes that fit into one transaction, one at least, and the values of all of them.

    The values of those that wait for a later transaction are not looked at: they may be many times as many.
    """
    if len(requests) == 1:
        return requests, requests[0].values
    if sum(map(len, map(_values, requests))) > ready.MAX_ITEMS:
        requests = requests[: _fitting(map(len, map(_values, requests)), ready.MAX_ITEMS)]
    values = _values_of(requests)
    if sum(map(len, map(itemgetter(0), values))) <= BATCH_BYTES:
        return requests, values
    sizes = (sum(map(len, map(itemgetter(0), push.values))) for push in requests)
    requests = requests[: _fitting(sizes, BATCH_BYTES)]
    return requests, values[: sum(map(len, map(_values, requests)))]


def _fitting(sizes: Iterable[int], room: int) -> int:
    """Return how many of these, from the first on, have room together; the first has."""
    return max(1, bisect_right(list(accumulate(sizes)), room))


def _values_of(pushes: Sequence[Push]) -> _Values:
    return pushes[0].values if len(pushes) == 1 else list(chain.from_iterable(map(_values, pushes)))
