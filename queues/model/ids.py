"""Ids of items: 20 bytes, which are the random element of the recipe's keys.

6 bytes of milliseconds since the epoch, then 14 random bytes; ids of one generator strictly increase (within one
millisecond, or when the clock steps back, the random part counts up: ULID's rule). No random byte is 0: a tuple
doubles that byte, which costs time in every key. The 14 bytes are drawn
uniformly from 1 to 255 for every fresh millisecond, which is 111.9 bits of entropy.
"""

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from itertools import repeat
from operator import add

from queues.errors import BadValue

SIZE = 20
#: Bytes of an id that hold the time of its creation; the rest are random.
TIME = 6
_RANDOM_BYTES = SIZE - TIME
#: Random bytes asked of the system at once. Each call releases and takes the interpreter's lock: a thread that created
#: ids in a loop with a call for each id kept other threads from running for seconds.
_DRAWN = 256 * _RANDOM_BYTES
#: Where milliseconds count from.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Milliseconds at the end of year 9999: later ones cannot be shown as a date.
LAST_MS = 253_402_300_799_999


class IdGenerator:
    """Creates increasing ids by one clock. Thread-safe."""

    def __init__(self, clock: Callable[[], float], *, random: Callable[[int], bytes] | None = None) -> None:
        """`random` returns a number of random bytes; by default the system's."""
        self._clock = clock
        self._urandom = random or os.urandom
        self._lock = threading.Lock()
        self._last = 0
        #: The millisecond of `_last`; further ids of the same one count up.
        self._last_ms = -1
        self._random = b""
        self._at = 0
        self._process = _process

    def new_id(self) -> bytes:
        """Return a new id, larger than all earlier ones of this generator."""
        if int(self._clock() * 1000) == self._last_ms and self._process is _process:
            with self._lock:
                last = self._last + 1
                if last & 0xFF:  # no byte of `_last` is 0, so none of this id is
                    self._last = last
                    return last.to_bytes(SIZE, "big")
        return self.new_ids(1)[0]

    def new_ids(self, n: int) -> list[bytes]:
        """Return `n` new ids in increasing order."""
        now_ms = int(self._clock() * 1000)
        with self._lock:
            if self._process is not _process:
                # A forked child draws new random bytes, so that its ids differ from its parent's.
                self._process = _process
                self._random, self._at = b"", 0
                first = self._begin(max(now_ms, self._last_ms + 1))
            elif now_ms > self._last_ms:
                first = self._begin(now_ms)
            else:
                first = self._next()
            ids: list[bytes] = []
            while True:
                ids += map(add, repeat(first[:-1]), _BYTES[first[-1] : first[-1] + n - len(ids)])
                self._last = int.from_bytes(ids[-1], "big")
                if len(ids) == n:
                    return ids
                first = self._next()

    def _begin(self, ms: int) -> bytes:
        """Return the first id of a millisecond."""
        self._last_ms = ms
        return ms.to_bytes(TIME, "big") + self._draw()

    def _next(self) -> bytes:
        """Return the smallest larger id without a random byte 0, or a new one when there is none."""
        following = (self._last + 1).to_bytes(SIZE, "big")
        zero = following.find(0, TIME)
        if zero == TIME:  # the carry has reached the milliseconds
            return self._begin(self._last_ms + 1)
        return following if zero < 0 else following[:zero] + b"\x01" * (SIZE - zero)

    def _draw(self) -> bytes:
        """Return fresh random bytes from 1 to 255: bytes 0 are rejected."""
        while len(self._random) - self._at < _RANDOM_BYTES:
            self._random, self._at = self._random[self._at :] + self._urandom(_DRAWN).replace(b"\x00", b""), 0
        drawn = self._random[self._at : self._at + _RANDOM_BYTES]
        self._at += _RANDOM_BYTES
        return drawn


_BYTES = [bytes([byte]) for byte in range(256)]
#: Identifies this process: another object in a forked child.
_process = object()


def _forked() -> None:
    global _process
    _process = object()


os.register_at_fork(after_in_child=_forked)


def another(rand: bytes, salt: bytes) -> bytes:
    """Return a replacement for an id that another item has; the time stays.

    The same bytes give the same id, so that a retried transaction writes the same.
    """
    drawn, n = b"", 0
    while len(drawn) < _RANDOM_BYTES:
        drawn += blake2b(rand + salt + n.to_bytes(4, "big")).digest().replace(b"\x00", b"")
        n += 1
    return rand[:TIME].ljust(TIME, b"\x00") + drawn[:_RANDOM_BYTES]


def above(rand: bytes) -> bytes:
    """Return the next larger bytes of an id's length. The end of a page that begins with it."""
    return (int.from_bytes(rand, "big") + 1).to_bytes(SIZE, "big")


def minted_ms(rand: bytes) -> int:
    """Return the milliseconds since the epoch of the id's creation."""
    return int.from_bytes(rand[:TIME], "big")


def minted_at(rand: object) -> datetime | None:
    """Return the time of the id's creation; None for a foreign element without a time."""
    return _minted_at(rand[:TIME]) if isinstance(rand, bytes) and len(rand) == SIZE else None


@lru_cache(maxsize=4_096)  # at thousands of items a second, many share a millisecond
def _minted_at(time: bytes) -> datetime | None:
    ms = int.from_bytes(time, "big")
    return at(ms) if ms <= LAST_MS else None


def at(ms: int) -> datetime:
    """Return milliseconds since the epoch as an aware UTC datetime."""
    return EPOCH + timedelta(milliseconds=ms)


def to_ms(when: datetime) -> int:
    """Return an aware datetime as milliseconds since the epoch."""
    return (when - EPOCH) // timedelta(milliseconds=1)


def parse(text: str) -> bytes | None:
    """Read an id of 40 lower-case hexadecimal digits; None for another text.

    No other text is read as the same id, so that ids can be compared as texts. What is no text raises `BadValue`.
    """
    if not isinstance(text, str):
        raise BadValue("An id is text, not {type}.", type=type(text).__name__)
    if len(text) != SIZE * 2:
        return None
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return None
    return raw if raw.hex() == text else None
