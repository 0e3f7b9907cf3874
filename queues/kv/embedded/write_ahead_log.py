"""The write-ahead log of a store: what each commit writes, flushed before LMDB has it.

The file `log` has two headers and a ring of records. The newer of the valid headers names the newest checkpoint, and
where the records behind it begin. The digest of a record includes that of the one before it, so no record of an
earlier lap passes for one of this lap. Each record has sectors of its own: it is written past the page cache where the
file system can do that, and no write touches an older record. What living processes share about the log is in the file
`log-state`, which is never flushed.
"""

import errno
import fcntl
import hashlib
import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from queues.kv.embedded import file_permissions
from queues.kv.embedded.meta_pages import DIGEST_BYTES, USED
from queues.kv.errors import StoreUnavailable

NAME, STATE_NAME = "log", "log-state"
#: Bytes of the ring, and of the largest record. A larger commit is flushed with a checkpoint.
RING_BYTES = 2 << 20
MAX_RECORD = RING_BYTES // 4
_HEADERS_AT, _RING_AT = (0, 4_096), 8_192
_FILE_BYTES = _RING_AT + RING_BYTES
LINK_BYTES = 16
#: Bytes of a disk's sector: records begin at multiples of it.
SECTOR = 512
#: Seconds for which opening waits for a process that recovers the store, and between two looks.
PATIENCE, _LOOK_EVERY = 60.0, 0.002
#: A header behind its digest: magic; epoch, commit, start; link, page size, digest of the root pages, meta pages.
_HEADER = struct.Struct(f"=8sQQQ{LINK_BYTES}sI{DIGEST_BYTES}s{2 * USED}s")
_MAGIC = b"pqlog2\0\0"
#: A record behind its digest: number of the commit, whether the pairs are left out, bytes of the pairs.
_RECORD = struct.Struct("=Q?I")
#: Pairs are msgpack: a map of keys to their values, None for keys that are not there. A key or value of a class that
#: extends bytes is packed as bytes: to refuse it here would fail all callers of its batch.
pack = msgspec.msgpack.Encoder(enc_hook=bytes).encode
unpack = msgspec.msgpack.Decoder(dict[bytes, bytes | None]).decode
#: The shared file: two flags, and the state.
_SOUND, _FAILED, _STATE_AT = 0, 1, 8
_STATE = struct.Struct(f"=QQQQQQQQ{LINK_BYTES}s")
_SHARED_BYTES = _STATE_AT + _STATE.size


class Checkpoint(NamedTuple):
    """A commit whose pages are all on the disk, and where the records of later ones begin."""

    epoch: int
    txnid: int
    #: Bytes of records before it since the ring was begun.
    start: int
    #: Digest of the record before `start`, or random bytes.
    link: bytes
    page_size: int
    #: Digest of the first pages of its trees: by it the file is known.
    roots: bytes
    #: The used bytes of LMDB's two meta pages.
    metas: bytes


class State(NamedTuple):
    """What the living processes share about the log; it means nothing after the last of them ended."""

    #: The last commit that is in the log, and where the next record goes.
    txnid: int
    tail: int
    #: The newest checkpoint: where its records begin, its epoch, its commit.
    base: int
    epoch: int
    checkpoint: int
    #: The data file: device and inode.
    device: int
    inode: int
    #: The process that keeps the checkpoint's pages from being used again, by its id; 0 when there is none.
    holder: int
    link: bytes


class Record(NamedTuple):
    """What a commit has left under the keys that it wrote."""

    txnid: int
    #: The pairs were too many: the commit was never acknowledged on this record alone.
    large: bool
    pairs: bytes


class WriteAheadLog:
    """One process's hold of the log. All but opening and closing under the store's write lock."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        #: Keeps other processes from opening the log, until `share`: one that recovers the store may fail.
        self._gate: int | None = _lock_gate(folder)
        with ExitStack() as opened:
            opened.callback(self._open_gate)
            self._descriptor, self.sole = _open(self._path)
            opened.callback(os.close, self._descriptor)
            self._sectors = _Sectors(self._path)
            opened.callback(self._sectors.close)
            self._map = _map(folder / STATE_NAME, make=self.sole)
            opened.pop_all()
        if self.sole:  # what is there is from before
            self._map[:_SHARED_BYTES] = bytes(_SHARED_BYTES)

    @classmethod
    def holds_records(cls, folder: Path) -> bool:
        """Say whether a log, which need not be writable, has records behind its checkpoint. Raises StoreUnavailable."""
        self = cls.__new__(cls)
        self._path = folder / NAME
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            checkpoint = self.newest()
            return checkpoint is not None and any(self.records(checkpoint))
        finally:
            os.close(self._descriptor)

    @property
    def sound(self) -> bool:
        """Whether the last commit is done and in the log: false while one is made, and after one that failed."""
        return self._map[_SOUND] == 1

    @sound.setter
    def sound(self, sound: bool) -> None:
        self._map[_SOUND] = sound

    @property
    def failed(self) -> bool:
        """Whether a flush of the data file failed: then no process knows what of it is on the disk."""
        return self._map[_FAILED] == 1

    def fail(self) -> None:
        """Note that a flush of the data file failed."""
        self._map[_FAILED] = 1

    @property
    def state(self) -> State:
        """What the processes share."""
        return State._make(_STATE.unpack_from(self._map, _STATE_AT))

    @state.setter
    def state(self, state: State) -> None:
        _STATE.pack_into(self._map, _STATE_AT, *state)

    def append(self, state: State, txnid: int, pairs: bytes) -> State:
        """Write and flush a commit's record; return the state behind it. Raises OSError."""
        large = len(pairs) > MAX_RECORD
        if large:
            pairs = b""
        record = _RECORD.pack(txnid, large, len(pairs)) + pairs
        link = _digest(record, state.link)
        self._write(state.tail, link + record)
        self.flush()
        tail = _sectors(state.tail + LINK_BYTES + len(record))
        return State(txnid, tail, *state[2:-1], link)

    def records(self, checkpoint: Checkpoint) -> Iterator[Record]:
        """Return the records behind a checkpoint. Raises OSError."""
        at, link, head = checkpoint.start, checkpoint.link, LINK_BYTES + _RECORD.size
        while True:
            digest, record = _split(self._read(at, head))
            if len(record) < _RECORD.size:  # the file was cut off
                return
            txnid, large, size = _RECORD.unpack(record)
            if size > MAX_RECORD:
                return
            record += self._read(at + head, size)
            if _digest(record, link) != digest:
                return
            yield Record(txnid, large, record[_RECORD.size :])
            at, link = _sectors(at + head + size), digest

    def write_header(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint into the slot of the one before the last; the next flush makes it valid."""
        header = _HEADER.pack(_MAGIC, *checkpoint)
        _pwrite(self._descriptor, _digest(header) + header, _HEADERS_AT[checkpoint.epoch % 2])

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that is whole. Raises OSError, StoreUnavailable."""
        found: list[Checkpoint] = []
        for at in _HEADERS_AT:
            digest, header = _split(os.pread(self._descriptor, LINK_BYTES + _HEADER.size, at))
            if _digest(header) == digest:
                magic, *rest = _HEADER.unpack(header)
                if magic != _MAGIC:
                    raise StoreUnavailable(
                        "The log of the store {path} was written by another release of this program. "
                        "Use that here, too.",
                        path=str(self._path.parent),
                    )
                found.append(Checkpoint._make(rest))
        return max(found, default=None)

    def flush(self) -> None:
        """Return once all that was written is durable. Raises OSError."""
        os.fdatasync(self._descriptor)

    def is_gone(self) -> bool:
        """Say whether the file was removed or replaced: no process would find what is written to it."""
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return True

    def share(self) -> None:
        """Let other processes open the log."""
        if self.sole:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            self.sole = False
        self._open_gate()

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()
        self._sectors.close()
        os.close(self._descriptor)
        self._open_gate()

    def abandon(self) -> None:
        """Close the descriptors in a forked child, where they are copies: all locks stay the parent's."""
        self._map.close()
        self._sectors.close()
        os.close(self._descriptor)
        if self._gate is not None:
            os.close(self._gate)

    def _open_gate(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            fcntl.flock(gate, fcntl.LOCK_UN)  # a child that was forked meanwhile has a copy
            os.close(gate)

    def _write(self, at: int, content: bytes) -> None:
        """Write a record into the ring, over its end too."""
        place = at % RING_BYTES
        room = RING_BYTES - place
        self._sectors.write(content[:room], _RING_AT + place)
        if len(content) > room:
            self._sectors.write(content[room:], _RING_AT)

    def _read(self, at: int, size: int) -> bytes:
        place = at % RING_BYTES
        content = os.pread(self._descriptor, min(size, RING_BYTES - place), _RING_AT + place)
        return content + os.pread(self._descriptor, size - len(content), _RING_AT) if len(content) < size else content


class _Sectors:
    """Writes whole sectors of the log, past the page cache where the file system can do that.

    A write through the page cache writes 4 kB at least, and costs more of the processor.
    """

    def __init__(self, path: Path) -> None:
        # Direct writes are made from aligned memory.
        self._memory = memoryview(mmap.mmap(-1, _sectors(LINK_BYTES + _RECORD.size + MAX_RECORD)))
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_DIRECT", 0))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def write(self, content: bytes, at: int) -> None:
        """Write content that begins a sector; the rest of its last one is undefined. Raises OSError."""
        self._memory[: len(content)] = content
        sectors = self._memory[: _sectors(len(content))]
        try:
            written = os.pwrite(self._descriptor, sectors, at)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._use_cache()  # the disk's sectors are larger
            written = os.pwrite(self._descriptor, sectors, at)
        if written < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the file; the memory may be in use, where a process is forked in the middle of a write."""
        os.close(self._descriptor)

    def _use_cache(self) -> None:
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags & ~getattr(os, "O_DIRECT", 0))


def _sectors(size: int) -> int:
    """Return a number of bytes, rounded up to whole sectors."""
    return -(-size // SECTOR) * SECTOR


def _open(path: Path) -> tuple[int, bool]:
    """Open the log; say whether no other process has it open, which then gives it all its blocks. Raises OSError."""
    descriptor = file_permissions.open_file(path)
    try:
        sole = _lock(descriptor, fcntl.LOCK_EX)
        if not sole and not _lock(descriptor, fcntl.LOCK_SH):
            raise _being_recovered(path.parent)
        size = os.fstat(descriptor).st_size
        if sole and size < _FILE_BYTES:  # zeros, as a flush would have to tell the file system of each new block
            try:
                _pwrite(descriptor, bytes(_FILE_BYTES - size), size)
            except OSError:
                os.ftruncate(descriptor, size)  # the rest of a full disk is for stores that are there
                raise
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, sole


def _lock_gate(folder: Path) -> int:
    """Wait until no other process opens the store, and return what keeps them waiting. Raises OSError."""
    gate = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    until = time.monotonic() + PATIENCE
    while not _lock(gate, fcntl.LOCK_EX):
        if time.monotonic() > until:
            os.close(gate)
            raise _being_recovered(folder)
        time.sleep(_LOOK_EVERY)
    return gate


def _being_recovered(folder: Path) -> StoreUnavailable:
    return StoreUnavailable("The store {path} is being recovered by another process. Try again.", path=str(folder))


def _map(path: Path, *, make: bool) -> mmap.mmap:
    """Map the file of what the processes share. Raises OSError, StoreUnavailable."""
    try:
        descriptor = file_permissions.open_file(path) if make else os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise StoreUnavailable(
            "The file {file} of the store {path} was removed while other programs use it. Stop them all; the next one "
            "to open the store makes it anew.",
            file=path.name,
            path=str(path.parent),
        ) from None
    try:
        if os.fstat(descriptor).st_size < _SHARED_BYTES:
            os.posix_fallocate(descriptor, 0, _SHARED_BYTES)  # a hole would kill us on a full disk
        return mmap.mmap(descriptor, _SHARED_BYTES)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, how: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        return True
    return False


def _pwrite(descriptor: int, content: bytes, at: int) -> None:
    if os.pwrite(descriptor, content, at) < len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _split(content: bytes) -> tuple[bytes, bytes]:
    return content[:LINK_BYTES], content[LINK_BYTES:]


def _digest(content: bytes, link: bytes = b"") -> bytes:
    return hashlib.blake2b(content, digest_size=LINK_BYTES, key=link).digest()
