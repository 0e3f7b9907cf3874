"""Growth of a queue, told from its low-water marks.

A queue that keeps up comes down again and again, however bursty its traffic; one that does not leaves a higher low
behind each time. So growth is judged by the lowest depth of each quarter of a minute: it is there when almost every
later mark is higher than almost every earlier one (Kendall's tau). That is independent of the size of bursts, and a
leak of one item a minute shows in it as well as a flood.
"""

from collections.abc import Sequence

from msgspec import Struct

#: Seconds of a mark, marks that make a minute, and marks that are kept.
SLOT, _MINUTE, _KEPT = 15.0, 4, 52
#: Marks of the quick look (two minutes), and the share of pairs that must rise, or fall, there and in the slow look.
_QUICK, _RISES, _CREEPS, _FALLS = 8, 0.75, 0.8, -0.5
#: Seconds of growth after which it is seen.
SEEN = SLOT * _QUICK
#: Items by which marks must have risen: quickly, and slowly; and quickly the share of a deep queue.
_QUICK_RISE, _SLOW_RISE, _OF_DEPTH = 10, 8, 0.05
#: Marks that are enough to tell a fall, and to tell anything.
_FEW, _FEWEST = 4, 2


class Marks(Struct, frozen=True, array_like=True):
    """Low-water marks of one queue."""

    #: Of each full slot, the oldest first.
    marks: tuple[int, ...] = ()
    #: Of the slot that is not full yet, and how many of its seconds have passed.
    low: int = 0
    passed: float = 0.0

    def after(self, seconds: float, before: int, now: int) -> "Marks":
        """Return the marks after some seconds, between two depths."""
        marks, low, passed = (
            list(self.marks),
            min(self.low, before, now) if self.passed else min(before, now),
            self.passed,
        )
        while seconds > 0:
            part = min(seconds, SLOT - passed)
            passed += part
            seconds -= part
            if passed >= SLOT:
                marks.append(low)
                low, passed = now, 0.0
        return Marks(tuple(marks[-_KEPT:]), low, passed)

    def shifted(self, items: int) -> "Marks":
        """Return the marks as if a person's act had come before them."""
        return Marks(tuple(mark + items for mark in self.marks), self.low + items, self.passed)

    def rises(self, least: float) -> bool:
        """Say whether the queue grew in the last two minutes, by so many items."""
        last = self.marks[-_QUICK:]
        if len(last) < _QUICK or last[-1] - last[0] < max(least, _QUICK_RISE, _OF_DEPTH * last[0]):
            return False
        return tau(last) >= _RISES

    def may_rise(self, now: int) -> bool:
        """Say whether a queue of so many items may be growing: it is new or was resumed."""
        if len(self.marks) < _FEWEST:
            return now >= _QUICK_RISE
        rose = self.marks[-1] - self.marks[0] >= _QUICK_RISE
        return len(self.marks) < _QUICK and rose and tau(self.marks) >= _RISES

    def creeps(self) -> bool:
        """Say whether it grew in the last thirteen minutes, however slowly."""
        if len(self.marks) < _KEPT:
            return False
        minutes = [min(self.marks[n : n + _MINUTE]) for n in range(0, _KEPT, _MINUTE)]
        return minutes[-1] - minutes[0] >= _SLOW_RISE and tau(minutes) >= _CREEPS

    def grows_by(self, least: float) -> float | None:
        """Return by how many items per second it grew since its lowest mark; None where it does not grow."""
        marks = self.marks[-_QUICK:] if self.rises(least) else self.marks if self.creeps() else ()
        if not marks:
            return None
        lowest = min(marks)
        slots = marks[::-1].index(lowest)
        return (marks[-1] - lowest) / (slots * SLOT)

    def flat(self) -> bool:
        """Say whether the low has been the same for two minutes: whatever grew has stopped."""
        last = self.marks[-_QUICK:]
        return len(last) == _QUICK and len(set(last)) == 1

    def rests(self) -> bool:
        """Say whether the low of the last two minutes is no higher than six minutes before, or at the beginning."""
        last, earlier = self.marks[-_QUICK:], self.marks[-4 * _QUICK :][:_QUICK]
        return len(self.marks) < 2 * _QUICK or min(last) <= min(earlier)

    def falls(self, least: float) -> bool:
        """Say whether the queue shrank in the last one or two minutes, by so many items."""
        last = self.marks[-_QUICK:]
        return len(last) >= _FEW and last[0] - last[-1] >= least and tau(last) <= _FALLS

    def drains(self, before: bool, least: float) -> bool:
        """Say whether it shrinks for a while to come. One that did `before` does so until its low falls no more."""
        last, earlier = self.marks[-_QUICK:], self.marks[-2 * _QUICK : -_QUICK]
        if not last or not min(last):
            return False  # it was empty just now
        if self.falls(max(least, _QUICK_RISE)) or self.turned.creeps():
            return before or self.clears_in is not None
        return before and bool(earlier) and min(last) < min(earlier)

    @property
    def turned(self) -> "Marks":
        """The marks of a queue that grows as this one shrinks."""
        return Marks(tuple([-mark for mark in self.marks]))

    @property
    def clears_in(self) -> float | None:
        """Seconds until it is empty, as fast as it fell since its highest mark; None: never, or within a minute."""
        if not self.marks:
            return None
        slots = self.marks[::-1].index(max(self.marks))
        fell = self.marks[-slots - 1] - self.marks[-1]
        left = self.marks[-1] / fell * SLOT * slots if fell else 0.0
        return left if left >= SLOT * _MINUTE else None


def tau(values: Sequence[int]) -> float:
    """Return the share of pairs that rise less the share that fall."""
    score = sum((later > earlier) - (later < earlier) for n, earlier in enumerate(values) for later in values[n + 1 :])
    return 2 * score / (len(values) * (len(values) - 1))
