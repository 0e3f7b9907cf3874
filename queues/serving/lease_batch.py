"""What hardly ever conflicts with anybody, done for many callers in one transaction: push, ack, extend, release.

An errand first issues its reads, so that those of a batch travel together, and then writes. Reads of a batch are made
before any of its writes: so no two errands of one batch are about the same item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from queues.errors import StaleLease
from queues.items.counters import CounterDelta
from queues.keys.queue_keys import QueueKeys
from queues.kv.port import ReadTransaction, Refused, Transact, Transaction
from queues.model.config import Config

#: Bytes of values of one batch; one errand alone may have more.
BATCH_BYTES = 1_000_000

#: Writes, and returns the answer; raises `StaleLease` before it has written anything.
Finish = Callable[[Config, CounterDelta], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """Something to be done to a queue."""

    begin: Callable[[Transaction], Finish]
    #: The items that it is about, unless they are new.
    rands: tuple[bytes, ...] = ()
    #: Bytes of the values that come in.
    size: int = 0


class Errands:
    """The server of a queue's errands."""

    contended = False

    def __init__(self, keys: QueueKeys, current: Callable[[ReadTransaction], Config]) -> None:
        self._keys = keys
        self._current = current

    def serve(self, tr: Transaction, requests: Sequence[Errand]) -> Sequence[Any | Refused]:
        """Do as many of the errands as fit together, in their order; one alone raises what there is to refuse."""
        finishes = [errand.begin(tr) for errand in _together(requests)]
        config = self._current(tr)
        delta = CounterDelta(self._keys, wake=False)
        answers: list[Any | Refused] = []
        for finish in finishes:
            try:
                answers.append(finish(config, delta))
            except StaleLease as stale:
                if len(requests) == 1:
                    raise
                answers.append(Refused(stale))
                continue
            if config.limited:  # the next one is measured by what this one has written
                delta = self._write(tr, delta)
        self._write(tr, delta)
        return answers

    def conduct(self, transact: Transact, requests: Sequence[Errand]) -> Sequence[Any | Refused]:
        """Serve a batch in one transaction."""
        answers: Sequence[Any | Refused] = transact(lambda tr: self.serve(tr, requests))
        return answers

    def _write(self, tr: Transaction, delta: CounterDelta) -> CounterDelta:
        if not delta.empty:
            delta.apply(tr)
        return CounterDelta(self._keys, wake=False)


def _together(requests: Sequence[Errand]) -> Sequence[Errand]:
    """Return the first errands that fit into one transaction, one at least."""
    if len(requests) == 1:
        return requests
    about: set[bytes] = set()
    room = BATCH_BYTES
    for at, errand in enumerate(requests):
        room -= errand.size
        if at and (room < 0 or not about.isdisjoint(errand.rands)):
            return requests[:at]
        about.update(errand.rands)
    return requests
