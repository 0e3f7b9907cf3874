"""A power cut loses nothing that was acknowledged: states in which it may leave the disk are opened again.

A program is traced while it puts and takes; from its writes and flushes follows what a disk may hold at any moment:
whatever a flush has taken along, and of the rest any blocks. Three mixtures of those are tried for every moment.
"""

import itertools
import math
import random
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from queues.kv import open_kv
from queues.kv.embedded import write_ahead_log
from queues.kv.port import ReadTransaction
from tests.queues.kv.tracing import SystemCall, traced

CALL = re.compile(r"(?P<name>\w+)\(\d+<(?P<path>[^>]*)>(?:\(deleted\))?,? ?(?P<rest>.*)", re.DOTALL)
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
TOLD = re.compile(r"(ask put|ack put|ask take|ack take) (token-\S+;)")
FILES = ("data.mdb", write_ahead_log.NAME)
#: Bytes that a disk writes as one.
BLOCK = 512
#: Which share of what was not flushed each file holds.
MIXTURES = itertools.cycle([(1.0, 0.0), (0.0, 1.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5), (0.5, 0.0), (1.0, 1.0)])
THREADS, EACH = 2, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One write or flush: the line of the trace where it began and where it ended, and what it wrote where."""

    name: str
    file: str
    began: int
    ended: int
    data: bytes = b""
    offset: int = 0
    failed: bool = False


def calls_of(command: list[str], log: Path, failing: int) -> list[Call]:
    """Run a command under strace and return its writes and flushes in the order in which they began.

    `failing`: which flush of each thread fails, from 1 on; none if 0.
    """
    fault = ["-e", f"inject=fdatasync:error=EIO:when={failing}"] if failing else []
    names = "pwrite64,write,writev,lseek,fdatasync,fsync,ftruncate,msync"
    whole = traced(command, log, names, "-y", "-xx", "-s", "2000000", *fault)
    return sorted(on_files(whole), key=lambda call: call.began)


def on_files(whole: Iterable[SystemCall]) -> Iterator[Call]:
    """Yield what was done to which files."""
    places: dict[tuple[str, str], int] = {}
    for one in whole:
        found = CALL.fullmatch(one.text)
        if found is None:
            continue
        failed = "(INJECTED)" in found["rest"]
        if " = -1 " in found["rest"] and not failed:
            continue
        name, file = found["name"], Path(unhex(found["path"]).decode(errors="replace")).name
        arguments = found["rest"].rpartition(" = ")[0].strip().removesuffix(")")
        data = b"".join(map(unhex, TEXT.findall(arguments)))
        offset = 0
        if name == "lseek":
            places[one.thread, file] = int(found["rest"].rpartition("= ")[2])
            continue
        assert name not in {"ftruncate", "msync"}, "neither LMDB nor we do this to a file in use"
        if name == "pwrite64":
            offset = int(arguments.rpartition(", ")[2], 0)
        elif name == "writev":
            offset = places.get((one.thread, file), 0)
        yield Call(name=name, file=file, began=one.began, ended=one.ended, data=data, offset=offset, failed=failed)


def unhex(text: str) -> bytes:
    """Return the bytes that strace shows."""
    return bytes.fromhex(text.replace("\\x", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write to one of the store's files, and the line of the trace from which on it is safe."""

    call: Call
    safe_from: float


def writes_among(calls: list[Call]) -> list[Write]:
    """Return the writes to the store's files.

    Each is safe once a flush ends that began after it. What a flush that fails was to take along may be lost for good:
    it passes for written, and no later flush cares for it.
    """
    writes = []
    for call in calls:
        if call.file in FILES and call.data:
            flushes = (one for one in calls if one.file == call.file and "sync" in one.name and one.began > call.ended)
            fates = itertools.takewhile(lambda flush: not flush.failed, flushes)
            writes.append(Write(call=call, safe_from=min((flush.ended for flush in fates), default=math.inf)))
    return writes


#: A part of a write: which one, and from which byte of the file to which one.
Part = tuple[int, int, int]


def left_behind(writes: list[Write], cut: int, chance: random.Random, shares: Sequence[float]) -> tuple[Part, ...]:
    """Return what a cut may leave of the writes: of what was not flushed, that share of the blocks of each file."""
    parts: list[Part] = []
    for n, write in enumerate(writes):
        call = write.call
        if call.began > cut:
            break
        first, last = call.offset, call.offset + len(call.data)
        if write.safe_from >= cut:
            edges = [first, *range((first // BLOCK + 1) * BLOCK, last, BLOCK), last]
            blocks = list(itertools.pairwise(edges))
            left = [block for block in blocks if chance.random() < shares[FILES.index(call.file)]]
            if len(left) < len(blocks):
                parts.extend((n, *block) for block in left)
                continue
        parts.append((n, first, last))
    return tuple(parts)


def content_of(writes: list[Write], parts: Iterable[Part]) -> dict[str, bytearray]:
    """Return what the store's files hold where these parts were written."""
    files = {name: bytearray() for name in FILES}
    for n, at, end in parts:
        call = writes[n].call
        content = files[call.file]
        content.extend(bytes(max(0, end - len(content))))
        content[at:end] = call.data[at - call.offset : end - call.offset]
    return files


def put_back(files: dict[str, bytearray], store: Path) -> None:
    """Have the store's files hold what a cut has left: the same files, with the same inodes."""
    for name, content in files.items():
        with (store / name).open("r+b") as file:
            file.truncate(0)
            file.write(content)
    for name in ("lock.mdb", "turns", write_ahead_log.STATE_NAME):  # these mean nothing after a start of the machine
        (store / name).unlink(missing_ok=True)


def found_in(store: Path) -> tuple[set[str], set[str], int]:
    """Open the store as after any start; return the tokens under both prefixes, and the counter."""

    def look(tr: ReadTransaction) -> tuple[set[str], set[str], int]:
        one, two = (
            {key.removeprefix(prefix).decode() for key, _ in tr.get_range(prefix, prefix + b"\xff", limit=1_000).wait()}
            for prefix in (b"one/", b"two/")
        )
        return one, two, int.from_bytes(tr.get(b"count").wait() or b"", "little")

    with closing(open_kv(f"lmdb:{store}")) as kv:
        return kv.read(look)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("failing", [0, 6, 9], ids=["no flush fails", "the sixth flush fails", "the ninth flush fails"])
def test_what_was_acknowledged_is_there_after_a_power_cut_at_any_moment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, failing: int
) -> None:
    store = tmp_path / "store"
    program = f"{sys.executable} -m tests.queues.kv.programs put_and_take lmdb:{store}"
    # A flush that fails is told to every process that has the file open; here only to the one.
    names = "a" if failing else "ab"
    programs = " & ".join(f"{program} {name} {THREADS} {EACH}" for name in names) + " & wait"
    calls = calls_of(["sh", "-c", programs], tmp_path / "log", failing)
    assert any(call.failed for call in calls) == (failing > 0)
    writes = writes_among(calls)
    told = [
        (call.began, *found.groups())
        for call in calls
        if call.file not in FILES and (found := TOLD.search(call.data.decode("latin-1")))
    ]
    puts = [what for _, what, _ in told].count("ack put")
    assert puts == len(names) * THREADS * EACH or (failing and puts)
    moments = {call.began for call in calls} | {call.ended for call in calls} | {max(call.ended for call in calls) + 1}
    begin = min(began for began, what, _ in told if what == "ack put")  # a file that is not made yet is nothing
    later = sorted(moment for moment in moments if moment >= begin)
    found: dict[tuple[Part, ...], tuple[set[str], set[str], int]] = {}
    for cut in later[:: 3 if failing else 1]:
        present, possible = expected(told, cut)
        for shares in ((0.0, 0.0), (0.5, 0.5), next(MIXTURES)):
            left = left_behind(writes, cut, random.Random(cut), shares)
            if left not in found:  # most moments leave what one before has left
                put_back(content_of(writes, left), store)
                found[left] = found_in(store)
            one, two, count = found[left]
            assert present <= one <= possible, (cut, shares)
            assert one == two
            assert len(one) == count
    assert "executed again from its log" in caplog.text


def expected(told: list[tuple[int, str, str]], cut: int) -> tuple[set[str], set[str]]:
    """Return the tokens that have to be there, and those that may be."""
    present, taken, possible = set(), set(), {token for _, _, token in told}
    for began, what, token in told:
        if began > cut:
            continue
        if what == "ack put":
            present.add(token)
        elif what == "ask take":
            present.discard(token)
        elif what == "ack take":
            taken.add(token)
    return present, possible - taken
