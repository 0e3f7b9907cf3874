"""One step of a search: how much it reads, when it ends, and what it has found."""

import time
from collections.abc import Callable

from queues.items.scan import Met
from queues.model.item import Item

#: Bytes of values after which a step ends, and seconds: a transaction has five.
STEP_BYTES = 1_000_000
STEP_SECONDS = 1.0
#: Seconds of looking at values, which may need to be unpacked for it: looked at behind each item, not each read.
LOOK_SECONDS = 0.25
#: Items of one read at most, and of the first one where few may fit: values have up to 100,000 bytes each.
MAX_READ, FIRST_READ = 100, 10


class Step:
    """What one step has looked at so far, and what it found. `pick` gives the item if it is one that is looked for."""

    def __init__(
        self,
        pick: Callable[[Met], Item | None],
        *,
        limit: int,
        scan: int,
        first: int = FIRST_READ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.items: list[Item] = []
        self.places: list[bytes] = []
        self.searched = 0
        self._limit = limit
        self._scan = scan
        self._pick = pick
        self._size = 0
        self._read = 0
        self._first = min(first, MAX_READ)
        self._met = 0
        self._clock = clock
        self._until = clock() + STEP_SECONDS
        self._looked = 0.0
        #: The place of the last item that was looked at, and whether the step ends there.
        self._last = b""
        self._late = False
        #: What was looked at when the last item was found.
        self._at_last = 0

    def next_read(self) -> int:
        """Return how many items to read next: more, where those before were small."""
        self._read = min(self._read * 4, MAX_READ) if self._read else self._first
        fitting = (STEP_BYTES - self._size) * self._met // self._size if self._size else self._read
        return max(1, min(self._read, fitting, self._scan - self._met))

    def full(self) -> bool:
        """Say whether the next step is to go on."""
        late = self._looked >= LOOK_SECONDS or self._clock() >= self._until
        return late or self._met >= self._scan or self._size >= STEP_BYTES

    def meet(self, place: bytes, met: Met | None) -> bool:
        """Look at an item. False when one was found more than was asked for, or looking took its time before."""
        if self._looked >= LOOK_SECONDS:
            self._late = True
            return False
        self._met += 1
        self._last = place
        if met is None:
            return True
        self._size += len(met.value)
        began = self._clock()
        item = self._pick(met)
        self._looked += self._clock() - began
        if item is not None:
            if len(self.items) == self._limit:
                return False
            self.items.append(item)
            self.places.append(place)
            self._at_last = self.searched + 1
        self.searched += 1
        return True

    def cut(self) -> bytes:
        """End behind the last item that is returned, or that was looked at in time."""
        if self._late:
            return self._last
        self.searched = self._at_last
        return self.places[-1]
