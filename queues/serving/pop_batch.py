"""The servers of a queue's takes: those of many callers together, in a transaction or in a round for all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from queues.errors import QueuePaused
from queues.items import ready
from queues.kv.port import Refused, Transact, Transaction
from queues.model.cursor import End
from queues.model.item import Item
from queues.serving.staging import Staging
from queues.serving.take_request import LATE, LateAnswer, One, Take, TakeAll, Taken

#: Bytes of values that one batch reads, as far as they can be guessed from the batch before.
_READ_BYTES = 2_000_000
#: Items taken last whose sizes are looked at, for the guess.
_SAMPLE = 32
Request = Take | One
#: None: nothing for a pop of one, late for any other take.
Answer = Taken | Item | LateAnswer | Refused
#: Of a take.
_number = itemgetter(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """Some of what should have been done long ago is to be done."""

    now_ms: int
    late_ms: int


class Takes:
    """The server of a queue's takes."""

    contended = True

    def __init__(
        self,
        take: TakeAll,
        pop_each: Callable[[Transaction, int, End], Sequence[Item | LateAnswer | None]],
        now_taking: Callable[[End], Take],
    ) -> None:
        self._take = take
        #: Pops one item for each of so many.
        self._pop_each = pop_each
        self._now_taking = now_taking
        #: How batches are served where other processes take as well.
        self.staging: Staging | None = None
        #: Bytes of an item, guessed from those taken last.
        self._size = 100

    def serve(self, tr: Transaction, requests: Sequence[Request]) -> Sequence[Answer]:
        """Take for as many as fit together."""
        try:
            first = requests[0]
            if type(first) is str:
                n = requests.count(first)
                if n == len(requests):
                    return self.pop_each(tr, n, first)
            return _to_each(requests, self.take(tr, self._with_times(requests), serializable=False))
        except QueuePaused as paused:
            return _refused(requests, paused)

    def conduct(self, transact: Transact, requests: Sequence[Request]) -> Sequence[Answer]:
        """Serve a batch in one transaction, or have it served. It may be tried again: so the time is told before it."""
        takes = self._with_times(requests)
        try:
            if self.staging is None:
                answers: Sequence[Answer] = transact(lambda tr: self.serve(tr, takes))
            else:
                answers = self.staging.conduct(transact, takes)
        except QueuePaused as paused:
            return _refused(requests, paused)
        return _to_each(requests, answers)

    def _with_times(self, requests: Sequence[Request]) -> Sequence[Take]:
        return [self._now_taking(one) if isinstance(one, str) else one for one in requests]

    def stop(self) -> None:
        """Let other processes know that this one takes for nobody any more."""
        if self.staging is not None:
            self.staging.stop()

    def pop_each(self, tr: Transaction, n: int, end: End) -> Sequence[Item | LateAnswer | None]:
        """Pop one item for each of as many as fit together."""
        answers = self._pop_each(tr, max(1, min(n, ready.MAX_ITEMS, _READ_BYTES // self._size)), end)
        self._remember([item for item in answers[:_SAMPLE] if item])
        return answers

    def take(self, tr: Transaction, takes: Sequence[Take], *, serializable: bool) -> Sequence[Taken]:
        """Take for as many as fit together, and remember how large items are."""
        answers = self._take(tr, self._together(takes), serializable=serializable)
        items: Iterator[Any] = chain.from_iterable(taken or () for taken in answers)
        self._remember(list(islice(items, _SAMPLE)))
        return answers

    def _remember(self, items: Sequence[Any]) -> None:
        """Remember how large items are."""
        if items:
            sizes = [len(item.raw if isinstance(item, Item) else item.value) for item in items]
            self._size = sum(sizes) // len(items) + 1

    def _together(self, takes: Sequence[Take]) -> Sequence[Take]:
        """Return the first takes whose items can be read at once, one at least."""
        room = min(ready.MAX_ITEMS, _READ_BYTES // self._size)
        if sum(map(_number, takes)) <= room:
            return takes
        for at, take in enumerate(takes):
            room -= take.n
            if at and room < 0:
                return takes[:at]
        return takes


class CatchingUp:
    """The server of those whose takes found that something is late: it is done once for all of a batch."""

    contended = True

    def __init__(self, catch_up: Callable[[Transaction, Late], None]) -> None:
        self._catch_up = catch_up

    def serve(self, tr: Transaction, requests: Sequence[Late]) -> Sequence[bool]:
        """Do some of what is late."""
        self._catch_up(tr, max(requests, key=lambda late: late.late_ms))
        return [True for _ in requests]

    def conduct(self, transact: Transact, requests: Sequence[Late]) -> Sequence[bool]:
        """Serve a batch in one transaction."""
        answers: Sequence[bool] = transact(lambda tr: self.serve(tr, requests))
        return answers


def _to_each(requests: Sequence[Request], answers: Sequence[Any]) -> list[Answer]:
    """Return the answers of those who are answered, to a pop of one its item."""
    return [
        _of_one(answer) if type(request) is str else answer for request, answer in zip(requests, answers, strict=False)
    ]


def _of_one(answer: Any) -> Answer:
    if answer is None:
        return LATE
    if isinstance(answer, Refused):
        return answer
    return answer[0] if answer else None


def _refused(requests: Sequence[Request], paused: QueuePaused) -> list[Refused]:
    return [Refused(QueuePaused(*paused.args)) for _ in requests]
