"""Pushes of many callers in one transaction: what is ready at once goes in together, in the order of the calls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import NamedTuple, cast

from queues.errors import QueueFull, ValueTooLarge
from queues.items import admission, ready
from queues.items.counters import CounterDelta
from queues.keys.queue_keys import QueueKeys
from queues.kv.port import ReadTransaction, Refused, Transact, Transaction
from queues.model.config import Config
from queues.model.item import Item
from queues.model.priority import Priority

#: Bytes of values of one batch; one push alone may have more.
BATCH_BYTES = 1_000_000


_Values = Sequence[tuple[bytes, Priority | None]]


class Push(NamedTuple):
    """Values that one caller pushes as one, each with its priority and its id."""

    values: _Values
    rands: Sequence[bytes]


#: One value with its priority; it gets its id where it is served, and its answer is its item. It is what most pushes
#: are, so it is no `Push` of one: what is made for every call is a good part of what the call costs.
One = tuple[bytes, Priority | None]
Request = Push | One
Answer = list[Item] | Item | Refused

#: Of a push.
_values, _rands = itemgetter(0), itemgetter(1)
#: Of a value with its priority.
_content = itemgetter(0)


class Pushes:
    """The server of a queue's pushes."""

    contended = False

    def __init__(
        self, keys: QueueKeys, current: Callable[[ReadTransaction], Config], new_id: Callable[[int], list[bytes]]
    ) -> None:
        self._keys = keys
        self._current = current
        self._mint = new_id

    def serve(self, tr: Transaction, requests: Sequence[Request]) -> Sequence[Answer]:
        """Push as much as fits together; one push alone raises what there is to refuse.

        Where a limit of items holds, each push is measured by what those before it have written.
        """
        ones = list(map(type, requests)).count(tuple)
        if not ones:
            return self._serve(tr, self._current(tr), cast(Sequence[Push], requests))
        config = self._current(tr)
        if ones == len(requests) and not config.limited and not config.closed:
            values = cast(_Values, requests)
            if sum(map(len, map(_content, values))) <= BATCH_BYTES:
                return self._push(tr, config, values, self._mint(ones))
        return _to_each(requests, self._serve(tr, config, self._with_ids(requests)))

    def _with_ids(self, requests: Sequence[Request]) -> list[Push]:
        """Return each request as a push with its ids."""
        return [one if isinstance(one, Push) else Push((one,), self._mint(1)) for one in requests]

    def _serve(self, tr: Transaction, config: Config, requests: Sequence[Push]) -> Sequence[list[Item] | Refused]:
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
            admission.admit(tr, self._keys, config, ())
            return {}
        refused = {}
        for at, push in enumerate(together):
            try:
                admission.admit(tr, self._keys, config, (len(value) for value, _ in push.values))
            except (QueueFull, ValueTooLarge) as error:
                if alone:
                    raise
                refused[at] = Refused(error)
        return refused

    def _insert(self, tr: Transaction, config: Config, pushes: Sequence[Push], values: _Values) -> list[Item]:
        rands = pushes[0].rands if len(pushes) == 1 else list(chain.from_iterable(map(_rands, pushes)))
        return self._push(tr, config, values, rands)

    def _push(self, tr: Transaction, config: Config, values: _Values, rands: Sequence[bytes]) -> list[Item]:
        delta = CounterDelta(self._keys, wake=True)
        items = ready.insert(tr, self._keys, config, values, rands, delta)
        delta.apply(tr)
        return items

    def conduct(self, transact: Transact, requests: Sequence[Request]) -> Sequence[Answer]:
        """Serve a batch in one transaction, which may be tried again: so ids are given before it."""
        pushes = self._with_ids(requests)
        answers: Sequence[list[Item] | Refused] = transact(lambda tr: self.serve(tr, pushes))
        return _to_each(requests, answers)


def _to_each(requests: Sequence[Request], answers: Sequence[list[Item] | Refused]) -> list[Answer]:
    """Return the answers of those who are answered, to a push of one its item."""
    return [
        answer[0] if type(request) is tuple and type(answer) is list else answer
        for request, answer in zip(requests, answers, strict=False)
    ]


def _together(requests: Sequence[Push]) -> tuple[Sequence[Push], _Values]:
    """Return the first pushes that fit into one transaction, one at least, and the values of all of them.

    The values of those that wait for a later transaction are not looked at: they may be many times as many.
    """
    if len(requests) == 1:
        return requests, requests[0].values
    if sum(map(len, map(_values, requests))) > ready.MAX_ITEMS:
        requests = requests[: _fitting(map(len, map(_values, requests)), ready.MAX_ITEMS)]
    values = _values_of(requests)
    if sum(map(len, map(_content, values))) <= BATCH_BYTES:
        return requests, values
    sizes = (sum(map(len, map(_content, push.values))) for push in requests)
    requests = requests[: _fitting(sizes, BATCH_BYTES)]
    return requests, values[: sum(map(len, map(_values, requests)))]


def _fitting(sizes: Iterable[int], room: int) -> int:
    """Return how many of these, from the first on, have room together; the first has."""
    return max(1, bisect_right(list(accumulate(sizes)), room))


def _values_of(pushes: Sequence[Push]) -> _Values:
    return pushes[0].values if len(pushes) == 1 else list(chain.from_iterable(map(_values, pushes)))
