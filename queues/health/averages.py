"""Averages of a rate over 1, 5 and 15 minutes, exponentially weighted, as load averages are."""

from math import exp

from msgspec import Struct

#: Seconds of the three averages.
SPANS = (60.0, 300.0, 900.0)
#: Items per second that are no traffic.
NO_TRAFFIC = 0.001
#: Averages of a rate, the shortest span first.
Average = tuple[float, float, float]
_ZERO: Average = (0.0, 0.0, 0.0)


class Averages(Struct, frozen=True, array_like=True):
    """The averaged rates of one queue, in items per second. They begin at zero: `of` corrects for that."""

    #: Seconds that were watched, at most as many as make no difference any more.
    known: float = 0.0
    pushed: Average = _ZERO
    taken: Average = _ZERO
    done: Average = _ZERO
    returned: Average = _ZERO
    #: The change of the ready items, acts of people left out.
    net: Average = _ZERO
    #: All of the queue's life was watched, and before it there was nothing.
    whole: bool = False

    def after(self, seconds: float, *, pushed: int, taken: int, done: int, returned: int, net: int) -> "Averages":
        """Return the averages after some seconds in which so many items were pushed, taken …"""
        if seconds <= 0:
            return self
        kept = tuple(exp(-seconds / span) for span in SPANS)

        def average(before: Average, items: int) -> Average:
            rate = items / seconds
            one, five, fifteen = (rate + (was - rate) * keep for was, keep in zip(before, kept, strict=True))
            return one, five, fifteen

        return Averages(
            known=min(self.known + seconds, 10 * SPANS[-1]),
            pushed=average(self.pushed, pushed),
            taken=average(self.taken, taken),
            done=average(self.done, done),
            returned=average(self.returned, returned),
            net=average(self.net, net),
            whole=self.whole,
        )

    def told(self, average: Average) -> tuple[float, ...]:
        """Return an average as it is told: of a queue that is younger than its minutes, with the time before it."""
        return average if self.whole else self.of(average)

    def of(self, average: Average) -> Average:
        """Return an average as if what was watched were all there is: right from the first seconds on."""
        if not self.known:
            return _ZERO
        one, five, fifteen = (
            value / (1.0 - exp(-self.known / span)) for value, span in zip(average, SPANS, strict=True)
        )
        return one, five, fifteen
