"""What many open overviews cost one server: frames a second for each, its processor time, its reads, its memory.

    python -m benchmarks sockets [--viewers 1000] [--seconds 10] [--queues 100] [--stalled 200] [--store fdb:FILE]
                                 [--plain]

The real server, `--queues` queues that all change ten times a second by another process, and viewers in a third one:
raw websockets, each with a session of its own, that offer compression as browsers do (unless `--plain`), watch all
these queues and acknowledge every frame. Measured with one viewer, with `--viewers`, with `--viewers` of which
`--stalled` read nothing and acknowledge nothing, and without these again: frames beside stalled sockets are compared
with those before and after, so that what else the machine does meanwhile counts less.
The processor time is the server's, all threads, user and system. What stalled sockets take is what the server then
holds above what it held with as many that did not stall: it keeps most of what it once had, so what each row adds says
less.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.harness import report, viewers
from benchmarks.harness.running_site import RunningSite
from queues import Queue, Transaction, open_store

#: Changes of every queue a second: as many as there are frames at most.
_RATE = 10.0
#: Queues changed in one transaction.
_TOGETHER = 10
_BAR_FRAMES, _BAR_CORES = 4.0, 1.0
#: Reads a second with many viewers may differ from those with one by so much, of 1; and bytes for a stalled socket.
_BAR_READS, _BAR_STALLED = 0.15, 1_000_000
#: Seconds in which the server closes the sockets of one measurement before the next ones come.
_CLOSE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one number of viewers cost."""

    viewers: int
    stalled: int
    least: float
    median: float
    megabytes: float
    cores: float
    reads: float
    #: Bytes that the server held, and how many of them came on top with these viewers: it gives little of them back.
    memory: int
    grown: int
    lost: int


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the verdicts."""
    parser = argparse.ArgumentParser(prog="sockets", description=__doc__)
    parser.add_argument("--viewers", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--queues", type=int, default=100)
    parser.add_argument("--stalled", type=int, default=200)
    parser.add_argument("--plain", action="store_true", help="viewers that do not offer compression, as browsers do")
    parser.add_argument("--store", default="", help="a store URL; empty: an embedded one in a folder of its own")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with RunningSite(folder, store_url=options.store, module="benchmarks.harness.served") as site:
            with open_store(site.store_url) as store:
                known = store.directory()
                names = [f"bench:{number}" for number in range(options.queues)]
                ids = [str(known[name] if name in known else store.create_queue(name).id) for name in names]
            cookies = site.sessions(options.viewers)
            context = multiprocessing.get_context("spawn")
            stop, go = context.Event(), context.Event()
            changer = context.Process(target=change, args=(site.store_url, options.queues, stop, go), daemon=True)
            changer.start()
            try:
                many = options.viewers
                counts = [(1, 0), (many, 0), (many, min(options.stalled, many - 1)), (many, 0)]
                rows = [measure(site, folder, cookies[:count], stalled, ids, options, go) for count, stalled in counts]
            finally:
                stop.set()
                changer.join(30)
    return verdicts(options, rows)


def measure(
    site: RunningSite,
    folder: Path,
    cookies: list[str],
    stalled: int,
    ids: list[str],
    options: argparse.Namespace,
    go: Event,
) -> Measured:
    """Connect viewers, begin to change queues, let them settle, and measure."""
    seconds = options.seconds
    go.clear()
    report.note(f"sockets: {len(cookies)} viewers, {stalled} of them stalled")
    before = site.memory()
    command = [sys.executable, "-m", "benchmarks.harness.viewers", site.host, str(site.port)]
    with subprocess.Popen(
        [*command, str(seconds), str(stalled), "plain" if options.plain else "packed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watch = {"t": "watch", "topic": "overview", "queues": ids}
        process.stdin.write(json.dumps({"cookies": cookies, "watch": watch}))
        process.stdin.close()
        if process.stdout.readline().strip() != "ready":
            raise SystemExit("the viewers did not connect")
        go.set()
        time.sleep(viewers.SETTLE)
        used, began, reads = site.cpu_seconds(), time.monotonic(), _reads(folder)
        time.sleep(seconds - 0.5)
        used, took, read = site.cpu_seconds() - used, time.monotonic() - began, _reads(folder)
        memory = site.memory()
        found = json.loads(process.stdout.readline())
    time.sleep(_CLOSE)
    return Measured(
        viewers=len(cookies),
        stalled=stalled,
        least=found["least"] / found["seconds"],
        median=found["median"] / found["seconds"],
        megabytes=found["bytes"] / found["seconds"] / 1e6,
        cores=used / took,
        reads=(read[1] - reads[1]) / max(0.1, read[0] - reads[0]),
        memory=memory,
        grown=memory - before,
        lost=found["lost"],
    )


def verdicts(options: argparse.Namespace, rows: list[Measured]) -> list[report.Figure]:
    """Print the table and return what it means."""
    one, many, stalled, again = rows
    unstalled = (many.least + again.least) / 2
    report.heading("Sockets")
    print(
        f"{options.queues} queues, each changed {_RATE:g} times a second; {options.seconds:g} s each; "
        f"{report.versions('django', 'channels', 'daphne', 'autobahn', 'twisted')}.\n"
    )
    report.table(
        (
            "viewers",
            "stalled",
            "frames/s, least",
            "median",
            "MB/s",
            "cores",
            "store reads/s",
            "memory MB",
            "+MB",
            "lost",
        ),
        [
            (
                row.viewers,
                row.stalled,
                round(row.least, 1),
                round(row.median, 1),
                round(row.megabytes),
                round(row.cores, 2),
                round(row.reads),
                round(row.memory / 1e6),
                round(row.grown / 1e6),
                row.lost,
            )
            for row in rows
        ],
    )
    per_frame = many.cores / max(1.0, many.median * many.viewers)
    ratio = many.reads / max(0.1, one.reads)
    return [
        report.Figure(
            what=f"{many.viewers} sockets, {options.queues} busy queues: frames/s of the slowest",
            value=f"{many.least:.1f}",
            bar=f"≥ {_BAR_FRAMES:g}",
            met=many.least >= _BAR_FRAMES and not many.lost,
        ),
        report.at_most(
            f"{many.viewers} sockets: the server's processor time ({per_frame * 1e6:.0f} µs a frame)",
            many.cores,
            _BAR_CORES,
            ".2f",
            " cores",
        ),
        report.at_most(
            f"store reads/s, {many.viewers} viewers against 1 (fewer where frames are paced)",
            ratio,
            1 + _BAR_READS,
            ".2f",
            "×",
        ),
        report.Figure(
            what=f"{stalled.stalled} stalled sockets: the slowest of the rest, against none stalled before and after",
            value=f"{stalled.least / max(0.1, unstalled):.2f}× ({stalled.least:.1f} frames/s)",
            bar="≥ 0.9×",
            met=stalled.least >= 0.9 * unstalled,
        ),
        report.Figure(
            what="memory for a stalled socket, above what as many sockets held of which none stalled",
            value=f"{max(0, stalled.memory - many.memory) / max(1, stalled.stalled) / 1e3:.0f} kB",
            bar=f"≤ {_BAR_STALLED / 1e3:.0f} kB",
            met=stalled.memory - many.memory <= _BAR_STALLED * stalled.stalled,
        ),
    ]


def change(url: str, queues: int, stop: Event, go: Event) -> None:
    """Change every queue ten times a second while `go` is set, in turn a push and a pop, ten queues a transaction.

    The entry of a process.
    """
    with open_store(url) as store:
        handles = [store.queue(f"bench:{number}") for number in range(queues)]

        def push(some: Sequence[Queue], tr: Transaction) -> None:
            for number, queue in enumerate(some):
                queue.push(b'{"order": 4711, "customer": "a viewer"}', priority=number % 7, tr=tr)

        def pop(some: Sequence[Queue], tr: Transaction) -> None:
            for queue in some:
                queue.pop_min(tr=tr)

        due, turn = time.monotonic(), 0
        while not stop.wait(max(0.0, due - time.monotonic())):
            for first in range(0, queues, _TOGETHER):
                store.transact(partial(push if turn % 2 == 0 else pop, handles[first : first + _TOGETHER]))
            turn += 1
            while not go.wait(0.1) and not stop.is_set():
                due = time.monotonic()
            due = max(due + 1 / _RATE, time.monotonic() - 1)


def _reads(folder: Path) -> tuple[float, int]:
    at, reads = (folder / "data" / "reads").read_text().split()
    return float(at), int(reads)
