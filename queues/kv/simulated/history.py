"""A multi-version map with optimistic concurrency control: what FoundationDB's storage and resolvers do."""

import threading
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from operator import itemgetter

from sortedcontainers import SortedDict

#: Versions between two commits, so that stamps of one version stay below the next one's.
VERSION_STEP = 1_000

KeyRange = tuple[bytes, bytes]
_VERSION = itemgetter(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one committed transaction wrote: its sorted keys and its cleared ranges."""

    version: int
    keys: tuple[bytes, ...]
    ranges: tuple[KeyRange, ...]

    def touches(self, begin: bytes, end: bytes) -> bool:
        """Tell whether something in [begin, end) was written."""
        at = bisect_left(self.keys, begin)
        if at < len(self.keys) and self.keys[at] < end:
            return True
        return any(low < end and begin < high for low, high in self.ranges)


class History:
    """Every version that a transaction may still read. Each method is atomic."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._values: SortedDict[bytes, list[tuple[int, bytes | None]]] = SortedDict()
        self._commits: deque[Commit] = deque()
        self._readers: Counter[int] = Counter()
        self._bytes = 0
        #: Commits that conflicted.
        self.refused = 0
        self.version = VERSION_STEP

    def begin(self) -> int:
        """Return the newest version and keep it readable until `end`."""
        with self._lock:
            self._readers[self.version] += 1
            return self.version

    def hold(self, version: int) -> None:
        """Keep a version that is readable now readable until another `end`."""
        with self._lock:
            self._readers[version] += 1

    def end(self, version: int) -> None:
        """Let go of a version that `begin` returned."""
        with self._lock:
            self._readers[version] -= 1
            if not self._readers[version]:
                del self._readers[version]
            oldest = min(self._readers, default=self.version)
            while self._commits and self._commits[0].version <= oldest:
                self._trim(self._commits.popleft(), oldest)

    def get(self, key: bytes, version: int) -> bytes | None:
        """Return a key's value at a version."""
        with self._lock:
            return _at(self._values.get(key, ()), version)

    def scan(
        self, begin: bytes, end: bytes, version: int, *, reverse: bool, step: int = 64
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs of [begin, end) at a version, in steps that each see a stable map, the first of `step`."""
        while begin < end:
            with self._lock:
                found = islice(self._values.irange(begin, end, (True, False), reverse=reverse), step)
                keys = [(key, _at(self._values[key], version)) for key in found]
            for key, value in keys:
                if value is not None:
                    yield key, value
            if len(keys) < step:
                return
            last = keys[-1][0]
            begin, end = (begin, last) if reverse else (last + b"\0", end)
            step = min(step * 4, 4_096)

    def conflicts(self, read: Iterable[KeyRange], since: int) -> bool:
        """Tell whether anything in the ranges was written after a version."""
        with self._lock:
            newer = list(takewhile(lambda commit: commit.version > since, reversed(self._commits)))
            return bool(newer) and any(commit.touches(*one) for one in read for commit in newer)

    def commit(
        self,
        read: Iterable[KeyRange],
        since: int,
        writes: dict[bytes, bytes | None],
        ranges: Iterable[KeyRange],
    ) -> tuple[int, set[bytes]] | None:
        """Apply writes unless what was read has changed (None). Return the new version and the keys touched."""
        with self._lock:
            if self.conflicts(read, since):
                self.refused += 1
                return None
            version = self.version + VERSION_STEP
            cleared = tuple(ranges)
            touched = set(writes)
            for begin, end in cleared:
                touched.update(self._values.irange(begin, end, (True, False)))
            for key in touched:
                self._put(key, version, writes.get(key))
            self._commits.append(Commit(version=version, keys=tuple(sorted(touched)), ranges=cleared))
            self.version = version
            return version, touched

    def latest(self, key: bytes) -> bytes | None:
        """Return a key's newest value."""
        with self._lock:
            versions = self._values.get(key)
            return versions[-1][1] if versions else None

    def bytes_used(self) -> int:
        """Return the bytes of all newest keys and values."""
        with self._lock:
            return self._bytes

    def lock(self) -> threading.RLock:
        """Return the lock that makes several calls atomic."""
        return self._lock

    def _put(self, key: bytes, version: int, value: bytes | None) -> None:
        versions = self._values.get(key)
        if versions is None:
            self._values[key] = [(version, value)]
            self._bytes += _weight(key, value)
        else:
            self._bytes += _weight(key, value) - _weight(key, versions[-1][1])
            versions.append((version, value))

    def _trim(self, commit: Commit, oldest: int) -> None:
        for key in commit.keys:
            versions = self._values.get(key)
            if versions is None:
                continue
            if len(versions) > 1:
                del versions[: max(0, _index(versions, oldest))]
            if len(versions) == 1 and versions[0][1] is None and versions[0][0] <= oldest:
                del self._values[key]


def _weight(key: bytes, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value)


def _at(versions: Sequence[tuple[int, bytes | None]], version: int) -> bytes | None:
    if versions and versions[-1][0] <= version:  # mostly
        return versions[-1][1]
    at = _index(versions, version)
    return versions[at][1] if at >= 0 else None


def _index(versions: Sequence[tuple[int, bytes | None]], version: int) -> int:
    """Return the place of the newest value at a version; -1 if there is none."""
    return bisect_right(versions, version, key=_VERSION) - 1
