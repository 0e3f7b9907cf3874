"""Turns of queues: which ones a round of the recorder reads."""

from collections.abc import Container, Iterable, Sequence

#: Queues of one round: recently changed ones, and further ones in turn; their writes stay below 1 MB.
HOT, OTHERS = 200, 200
#: Queues of one round that are read for the first time: whole, with the ends of their histories.
FIRST = 200


class Turns:
    """Chooses the queues of each round: changing ones, and some of the rest in turn."""

    def __init__(self) -> None:
        self._next = 0
        #: Ids of queues that were written to, the latest last.
        self._hot: dict[int, None] = {}

    @property
    def size(self) -> int:
        """The most queues of one round."""
        return HOT + OTHERS

    def choose(self, ids: Sequence[int], changed: Iterable[int], known: Container[int]) -> list[int]:
        """Return the queues of this round.

        Only a few are new to the recorder at once, so the first rounds after a start are not too long.
        """
        there = set(ids)
        for queue_id in changed:
            if queue_id in there:  # deleted ones would take their places
                self.put_first(queue_id)
        chosen: dict[int, None] = {}
        first = 0
        for queue_id in reversed(self._hot):
            new = queue_id not in known
            if queue_id in there and first + new <= FIRST:
                chosen[queue_id] = None
                first += new
        for _ in range(len(ids)):
            queue_id = ids[self._next % len(ids)]
            first += queue_id not in known and queue_id not in chosen
            if len(chosen) == self.size or first > FIRST:
                break
            chosen[queue_id] = None
            self._next = (self._next + 1) % len(ids)
        return list(chosen)

    def put_first(self, queue_id: int) -> None:
        """Record that a queue changed: the latest ones are read every second."""
        self._hot.pop(queue_id, None)
        self._hot[queue_id] = None
        if len(self._hot) > HOT:
            self._hot.pop(next(iter(self._hot)))

    def keep(self, ids: Iterable[int]) -> None:
        """Forget all queues but these."""
        for queue_id in self._hot.keys() - set(ids):
            del self._hot[queue_id]
