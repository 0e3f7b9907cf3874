"""A store's clock: one time line for all processes that use the store, whatever their own wall clocks say.

The store keeps an anchor: the time that it was at one reading of a count that all its processes see alike (see
`KeyValueStore.count`). The time is the anchor's plus what the count has advanced since. A process reads both when it
opens the store and then, while it uses the store, every `CALIBRATE` seconds; in between it goes on by the time that
has elapsed on its machine. Wall clocks only begin a time line, and pull it slowly. docs/decisions/0010 says why.
"""

import logging
import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from queues.errors import NewerFormat, StoreError
from queues.keys.keyspace import Keyspace
from queues.kv.port import Count, KeyValueStore, Transaction
from queues.model import records
from queues.model.ids import LAST_MS, at
from queues.model.log_limit import LogLimit
from queues.serving.background import BackgroundThreads

log = logging.getLogger("queues.serving.clock")

#: Seconds between two readings of the anchor in a process that uses the store.
CALIBRATE = 10.0
#: Seconds after which the anchor is written anew: by a process that uses the store, and by one that opens it.
REFRESH, REFRESH_AT_OPENING = 60.0, 3_600.0
#: Seconds by which a wall clock may differ and still pull the time line.
FOLLOWED = 150.0
#: Seconds by which a wall clock pulls the time line in a second, and the most seconds that are counted at once.
PULL, PULLED_AT_ONCE = 0.000_5, 3_600.0
#: Seconds after which a time line follows wall clocks that all differ from it by the same; and what counts as the same.
OUTVOTED, SAME = 3_600.0, 2.0
#: Seconds for which a process knows better than one that began a new time line since.
REMEMBERED = 600.0
#: Seconds by which the clock stops instead of stepping back.
HELD = 2.0
#: Seconds by which a wall clock differs visibly: it is logged, and shown on the site.
SKEWED = 5.0
#: Wall clocks before 2026 were never set. One that is set and a day behind the last time shows that to be wrong.
_EVER_SET, _DAY = 1_767_225_600.0, 86_400.0
#: How often a reading begins anew because another process wrote the anchor meanwhile.
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A moment of a time line. Times and counts are microseconds."""

    #: Which time line: its times never step.
    line: str
    epoch: str
    count: int
    time: int
    #: The time line that this one replaced for want of any process that could go on with it.
    instead: str = ""
    #: By how much the wall clocks of the last writers are ahead, if that is too much to follow; and since when.
    apart: int | None = None
    since: int = 0

    def encode(self) -> bytes:
        """Return the anchor as the store keeps it."""
        return records.encode(asdict(self))

    @classmethod
    def decode(cls, record: bytes | None) -> "Anchor | None":
        """Read an anchor; None when there is none that can be read."""
        if record is None:
            return None
        try:
            header, _ = records.decode(record)
            apart = header.get("apart")
            anchor = cls(
                line=str(header["line"]),
                epoch=str(header["epoch"]),
                count=int(header["count"]),
                time=int(header["time"]),
                instead=str(header.get("instead", "")),
                apart=None if apart is None else int(apart),
                since=int(header.get("since", 0)),
            )
            if 0 <= anchor.time <= LAST_MS * 1000:
                return anchor
        except (NewerFormat, ValueError, KeyError, TypeError, AttributeError):
            pass
        log.warning("The anchor of the store's clock cannot be read; it is written anew.")
        return None

    def time_at(self, count: Count) -> int | None:
        """Return the time at a count; None when it is of another epoch, or began anew within one."""
        passed = count.micros - self.count
        return self.time + passed if self.epoch == count.epoch and passed > -HELD * 1e6 else None


class Clock(ABC):
    """A clock, read as seconds or milliseconds since the epoch, or as a date."""

    @abstractmethod
    def __call__(self) -> float:
        """Return the seconds since the epoch."""

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch."""
        return int(self() * 1000)

    def now(self) -> datetime:
        """Return the time, UTC."""
        return at(self.now_ms())


class GivenClock(Clock):
    """A clock that the caller gives as a function."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds

    def __call__(self) -> float:
        """Return the seconds since the epoch."""
        return self._seconds()


class StoreClock(Clock):
    """Seconds since the epoch by the store's clock. Thread-safe; a call costs no read.

    `wall` is this process's own clock, `count` the store's, `elapsed` seconds of this machine that only ever grow.
    """

    def __init__(
        self,
        kv: KeyValueStore,
        keyspace: Keyspace,
        *,
        wall: Callable[[], float],
        count: Callable[[], Count],
        elapsed: Callable[[], float],
        background_threads: BackgroundThreads,
    ) -> None:
        self._kv = kv
        self._key = keyspace.clock
        self._wall = wall
        self._count = count
        self._elapsed = elapsed
        self._aside = background_threads
        self._lock = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        self._line = ""
        self._told = False
        #: The elapsed seconds of the last reading.
        self._read_at = 0.0
        #: What elapsed seconds lack to be the time; the least time to tell.
        self._reckoning = (wall() - elapsed(), 0.0)
        #: The elapsed seconds of the next reading.
        self._due = float("inf")
        self._limited = LogLimit(log, monotonic=elapsed)

    def __call__(self) -> float:
        """Return the time; when the last reading is old, have another one made meanwhile."""
        elapsed = self._elapsed()
        if elapsed >= self._due:
            self._read_aside()
        ahead, least = self._reckoning
        now = elapsed + ahead
        return now if now >= least else least  # noqa: FURB136 - a call costs more

    @property
    def skew(self) -> float:
        """The seconds by which this process's wall clock is ahead of the store's."""
        return self._wall() - self()

    def open(self) -> None:
        """Take up the store's time line, or begin it; where that fails, go by the wall clock until it works."""
        try:
            self._calibrate(REFRESH_AT_OPENING)
        except StoreError as error:
            log.warning("The store's clock cannot be read; this process's own is used: %s", error)

    def calibrate(self) -> None:
        """Read the store's time line now, and write its anchor anew where that is old. Raises the store's errors."""
        self._calibrate(REFRESH)

    def set(self, note: Callable[[Transaction, datetime, datetime], None] = lambda tr, was, now: None) -> float:
        """Begin a time line by this process's wall clock; return by how many seconds it is ahead of the one before.

        Processes that use the store take it up within `CALIBRATE` seconds. `note` is told both times, inside of the
        transaction.
        """
        with self._lock:
            count, elapsed = self._reading()
            wall = self._wall()
            was = elapsed + self._reckoning[0]
            line = secrets.token_hex(8)
            record = Anchor(line=line, epoch=count.epoch, count=count.micros, time=_micros(wall)).encode()

            def write(tr: Transaction) -> None:
                tr.use_reserve()
                tr.set(self._key, record)
                note(tr, at(int(was * 1000)), at(int(wall * 1000)))

            self._kv.transact(write)
            self._take_up(line, wall, elapsed)
            return wall - was

    def close(self) -> None:
        """Wait for a reading that is under way; there are none afterwards."""
        if os.getpid() != self._process:
            return  # a forked child has no thread that would let go of the lock
        with self._lock:
            self._closed = True

    # Inside

    def _read_aside(self) -> None:
        """Have a thread read the anchor: the caller may be in a transaction, or run an event loop."""
        self._due = self._elapsed() + CALIBRATE
        with suppress(RuntimeError):  # the interpreter ends
            self._aside.start(self._try_to_calibrate, "pqadmin-clock")

    def _try_to_calibrate(self) -> None:
        try:
            self.calibrate()
        except StoreError as error:
            log.debug("The store's clock goes on by this machine's: %s", error)

    def _calibrate(self, refresh: float) -> None:
        with self._lock:
            self._due = self._elapsed() + CALIBRATE
            for _ in range(_TRIES):
                if self._closed or self._settle(refresh):
                    break
        self._tell()

    def _settle(self, refresh: float) -> bool:
        """Read anchor and count, and go by them; False when another process wrote the anchor meanwhile."""
        record = self._kv.read(lambda tr: tr.get(self._key).wait())
        count, elapsed = self._reading()
        anchor, wall = Anchor.decode(record), self._wall()
        time = None if anchor is None else anchor.time_at(count)
        if self._knows_better(anchor, time, elapsed):
            own = elapsed + self._reckoning[0]
            fresh = Anchor(line=self._line, epoch=count.epoch, count=count.micros, time=_micros(own))
        elif anchor is None or time is None:
            first = wall if anchor is None else _first(wall, anchor.time / 1e6)
            fresh = Anchor(
                line=secrets.token_hex(8),
                epoch=count.epoch,
                count=count.micros,
                time=_micros(first),
                instead="" if anchor is None else anchor.line,
            )
        else:
            agrees = anchor.apart is not None and abs(wall - time / 1e6) <= FOLLOWED
            if not agrees and (time - anchor.time) / 1e6 < refresh:
                self._take_up(anchor.line, time / 1e6, elapsed)
                return True
            fresh = _refreshed(anchor, count, time, _micros(wall))
        if not self._write(fresh, record):
            return False
        self._take_up(fresh.line, fresh.time / 1e6, elapsed)
        return True

    def _knows_better(self, anchor: Anchor | None, time: int | None, elapsed: float) -> bool:
        """Say whether this process can go on with a time line that the anchor does not lead to any more.

        The machine's or the cluster's count began anew, or the anchor was damaged; or another process, which did not
        know the time line, has begun one instead.
        """
        if not self._line:
            return False
        if anchor is None:
            return True
        if anchor.instead == self._line:
            return elapsed - self._read_at < REMEMBERED
        return time is None and anchor.line == self._line

    def _reading(self) -> tuple[Count, float]:
        """Return the count, and the elapsed seconds that it belongs to."""
        before = self._elapsed()
        count = self._count()
        return count, (before + self._elapsed()) / 2

    def _write(self, anchor: Anchor, seen: bytes | None) -> bool:
        """Write the anchor unless another one was written since; a store that takes no writes is left as it is."""
        record = anchor.encode()

        def write(tr: Transaction) -> bool:
            if tr.get(self._key).wait() != seen:
                return False
            tr.use_reserve()
            tr.set(self._key, record)
            return True

        try:
            return self._kv.transact(write)
        except StoreError as error:
            self._limited.warn(type(error), "The anchor of the store's clock could not be written: %s", error)
            return True

    def _take_up(self, line: str, time: float, elapsed: float) -> None:
        """Go by a time line, of which it was `time` when so many seconds had elapsed."""
        was = max(self._reckoning[0] + elapsed, self._reckoning[1])
        least = 0.0
        if self._line and time < was:
            if was - time <= HELD:
                least = was
            else:
                log.warning("The store's clock was set back by %s.", spelled(was - time))
        self._line, self._read_at = line, elapsed
        self._reckoning, self._due = (time - elapsed, least), elapsed + CALIBRATE

    def _tell(self) -> None:
        """Log once that this process's wall clock differs."""
        skew = self.skew
        if abs(skew) <= SKEWED:
            self._told = False
        elif not self._told:
            self._told = True
            log.warning("%s; times follow the store's clock.", describe(skew))


def _refreshed(anchor: Anchor, count: Count, time: int, wall: int) -> Anchor:
    """Return the anchor moved to this moment, and pulled towards a wall clock."""
    ahead, age = wall - time, (time - anchor.time) / 1e6
    now = replace(anchor, epoch=count.epoch, count=count.micros, time=time, instead="", apart=None, since=0)
    if abs(ahead) <= FOLLOWED * 1e6:
        most = int(PULL * 1e6 * min(max(age, 0.0), PULLED_AT_ONCE))
        return replace(now, time=time + max(-most, min(most, ahead)))
    if anchor.apart is None or abs(anchor.apart - ahead) > SAME * 1e6:
        return replace(now, apart=ahead, since=time)
    if time - anchor.since < OUTVOTED * 1e6:
        return replace(now, apart=anchor.apart, since=anchor.since)
    return replace(now, line=secrets.token_hex(8), time=wall)


def _first(wall: float, last: float) -> float:
    """Return with which time a line begins after one that ended some time after `last`: never an earlier one.

    But for a last time that must have been wrong, as it lies in the future of a clock that was set.
    """
    return wall if wall >= last or (wall >= _EVER_SET and last - wall > _DAY) else last


def describe(skew: float) -> str:
    """Write by how much this process's clock is ahead of the store's, or behind."""
    return f"This process's clock is {spelled(abs(skew))} {'ahead of' if skew > 0 else 'behind'} the store's"


def spelled(seconds: float) -> str:
    """Write a length of time in its two largest units."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"


def _micros(seconds: float) -> int:
    return int(seconds * 1e6)
