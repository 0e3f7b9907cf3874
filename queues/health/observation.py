"""Observation of a queue: the input of the model of health at one moment."""

from msgspec import Struct


class Observation(Struct, frozen=True, array_like=True):
    """One queue at one moment; totals only grow, and count the work of programs alone."""

    #: Seconds since the epoch, by the store's clock.
    at: float
    ready: int = 0
    leased: int = 0
    dead: int = 0
    #: Items that programs pushed, took (by pop or lease) and finished (by pop or acknowledgement).
    pushed: int = 0
    taken: int = 0
    done: int = 0
    #: Leases that programs gave back and extended, and leases that expired.
    released: int = 0
    extended: int = 0
    expired: int = 0
    #: Items that people pushed, took, moved, deleted, restored …: a change says that a person acted.
    hands: int = 0
    #: When the item that has been claimable for longest became so; None when none is.
    oldest: float | None = None
    #: About the seconds that 95 of 100 items waited that were taken lately; None when unknown.
    wait: float | None = None
    #: Live consumers; None when none ever told of itself.
    consumers: int | None = None
    #: When the queue was paused; None when it is not.
    paused: float | None = None
    #: Counters and items were seen to disagree.
    drift: bool = False
    #: Other programs write the items.
    attached: bool = False
    #: The records cannot be read.
    unreadable: bool = False
    #: When the last consumer ended, and whether it did so without a word.
    ended: float | None = None
    lost: bool = False
    #: Items that become ready later, as those do that come back after a delay.
    delayed: int = 0
    #: The most items, ready and delayed, that pushes may bring; None: no limit.
    most: int | None = None

    @property
    def counts(self) -> tuple[float | None, ...]:
        """Everything that changes with an item, and with a pause."""
        held = (self.ready, self.leased, self.dead, self.oldest, self.paused)
        return (*held, self.pushed, self.signs, self.returned, self.hands)

    @property
    def signs(self) -> int:
        """Everything that only a live consumer does."""
        return self.taken + self.done + self.released + self.extended

    @property
    def returned(self) -> int:
        """Items that came back from consumers."""
        return self.released + self.expired

    @property
    def is_full(self) -> bool:
        """Say whether the next push is refused, as it would pass the limit of items."""
        return self.most is not None and self.ready + self.delayed >= self.most

    def follows(self, before: "Observation") -> bool:
        """Say whether the totals have only grown since; otherwise they began anew."""
        return all(
            now >= then
            for now, then in (
                (self.pushed, before.pushed),
                (self.taken, before.taken),
                (self.done, before.done),
                (self.returned, before.returned),
                (self.extended, before.extended),
                (self.hands, before.hands),
            )
        )
