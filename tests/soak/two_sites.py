"""Two sites, four workers and two importers on one store, killed at random, with wall clocks off by an hour.

    python -m tests.soak.two_sites [--minutes 30 | --seconds 40] [--store fdb:CLUSTER_FILE] [--seed N] [--folder PATH]

Each process gets a wall clock that is right, an hour fast or an hour slow whenever it starts, and at times while it
runs (`wall_clock.c`; needs a C compiler). Importers push files chunk by chunk and resume them after each kill. Handlers
are quick, take longer than their leases, hold the interpreter for longer than their leases, fail, or always fail; some
push what follows, delayed, in the transaction that acknowledges. Workers and importers are killed to the end, sites in
the first 40 % of the time: then their memory is watched. SIGKILL mostly, SIGTERM at times.

Afterwards nothing is killed and the store must run empty. Then each value must have been completed once, by a key that
the acknowledging transaction counts up; each id must stand for one value; no attempt may have begun on what was
completed, on a delayed item before it was due, or while another process's lease was not over (the rule is that of
`two_sites_verdict.overlaps`); what always fails, and only that, must be dead; the counters must add up in every
sample and at the end; doctor must find nothing once the sites have swept what killed processes left behind; both sites
must have answered `/readyz` and their live sockets all the time, in memory that stays flat.

Without `--store` it runs on an embedded store in a folder of its own. A cluster need not be empty: queues and keys are
of this run. Prints one table; exits with 1 when something was wrong, and leaves the folder with all logs then.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from queues import open_store
from queues.errors import StoreError
from tests.ports import free_port
from tests.soak import two_sites_verdict as verdict
from tests.soak import wall_clock
from tests.soak.two_sites_processes import ENDED, ROOT, SILENT, Importer, Running, Viewer
from tests.soak.two_sites_worker import LEASED, MAX_ATTEMPTS, boottime, effects

#: Part of the time in which sites are killed too.
SITES_KILLED = 0.4
#: Seconds between two samples of memory and of sums.
SAMPLE_EVERY = 10.0
#: Seconds in which SIGTERM may end a process that does not mind it yet.
YOUNG = 15.0
#: Seconds in which the store must run empty when nothing is killed any more.
DRAINED = 300.0
#: Seconds in which sites sweep what killed processes left behind: five minutes, and rounds of two sweepers.
SWEPT = 420.0
#: Ready items at which importers wait.
FULL = 3_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: what was seen, and whether that is as it must be; None: it is told only."""

    what: str
    seen: str
    well: bool | None = None


class Soak:
    """One run: its processes, what they should have done, and what was seen."""

    def __init__(
        self, url: str, folder: Path, *, seconds: float, seed: int, rate: float, kill_every: float, shift: int
    ) -> None:
        self.url = url
        self.folder = folder
        self.seed = seed
        #: Seconds by which the wall clock of a process is ahead: it gets one of these when it starts.
        self.shifts = (0, shift, -shift)
        self.rate = rate
        self._seconds = seconds
        self._kill_every = kill_every
        self._chance = random.Random(f"{seed} kills")
        self.run_name = f"soak-{int(time.time())}-{seed}"
        self.library = wall_clock.build(folder)
        self.lives: dict[str, verdict.Life] = {}
        self.counted: Counter[str] = Counter()
        self.wrongs: list[str] = []
        self._pushed: Counter[str] = Counter()
        self._expected: list[str] = []
        self._poison: set[str] = set()
        self._imported = self._depth = 0
        self._samples: dict[str, list[tuple[float, int]]] = defaultdict(list)
        self._sums = 0
        self._store = open_store(url)
        queues = [self._store.create_queue(f"{self.run_name}:{kind}") for kind in LEASED]
        self.ids = [queue.id for queue in queues]
        acts = self._store.actions("soak", via="cli")
        for queue in queues:
            acts.configure(queue.name, max_attempts=MAX_ATTEMPTS)
        self.workers = [Running(self, f"worker-{n}", self._worker) for n in range(1, 5)]
        self.ports = [free_port(), free_port()]
        self.sites = [
            Running(
                self,
                f"site-{n}",
                lambda _, port=port: (sys.executable, str(ROOT / "manage.py"), "serve", "--port", str(port)),
                PQADMIN_DATA=str(folder / f"site-{n}"),
                PQADMIN_STORE=url,
            )
            for n, port in enumerate(self.ports, 1)
        ]
        self.importers = [Importer(self, n) for n in (1, 2)]
        self.viewers = [Viewer(self, site, port) for site, port in zip(self.sites, self.ports, strict=True)]

    def _worker(self, life: str) -> Sequence[str]:
        log = self.folder / f"{life}.attempts"
        command = (sys.executable, "-m", "tests.soak.two_sites_worker", "--store", self.url)
        return (*command, "--run", self.run_name, "--log", str(log))

    # What threads tell

    def wrong(self, what: str) -> None:
        """Note what must not be."""
        self.wrongs.append(what)
        say(f"wrong: {what}")

    def expect(self, kind: str, value: Mapping[str, Any]) -> None:
        """Note what a line of a file is to bring about."""
        self._pushed[kind] += 1
        self._imported += 1
        if value.get("fails", 0) < 0:
            self._poison.add(value["name"])
            return
        self._expected += [value["name"] + "+" * hop for hop in range(value.get("hops", 0) + 1)]
        self._pushed["chain"] += value.get("hops", 0)

    def full(self) -> bool:
        """Say whether importers are to wait."""
        return self._depth > FULL

    # The run

    def run(self) -> list[Line]:
        """Let everything run and be killed, then run empty; return the table."""
        try:
            self._begin()
            self._kill_and_sample()
            self._drain()
            return self._judge()
        finally:
            for running in (*self.workers, *self.sites, *(importer.running for importer in self.importers)):
                if running.process is not None and running.process.poll() is None:
                    running.process.kill()
                    running.process.wait()
            self._store.close()

    def _begin(self) -> None:
        for running, shift in zip(self.sites, self.shifts[1:], strict=True):
            running.start(shift)
        for running, shift in zip(self.workers, (*self.shifts, 0), strict=True):
            running.start(shift)
        for thread in (*self.importers, *self.viewers):
            thread.start()

    def _kill_and_sample(self) -> None:
        began = time.monotonic()
        ends, sites_until = began + self._seconds, began + self._seconds * SITES_KILLED
        next_kill, next_sample = began + self._kill_every, began
        while (now := time.monotonic()) < ends:
            if now >= next_sample:
                next_sample = now + SAMPLE_EVERY
                self._sample()
            if now >= next_kill:
                next_kill = now + self._kill_every * self._chance.uniform(0.3, 1.7)
                if self._chance.random() < 1 / 4:
                    self._set_a_clock()
                else:  # rarely a site, which takes seconds to start
                    sites = now < sites_until and self._chance.random() < 1 / 6
                    self._kill(self._chance.choice(self.sites if sites else self.workers))
            self._restart_what_ended()
            time.sleep(0.1)

    def _set_a_clock(self) -> None:
        self.counted["clocks set of running processes"] += 1
        self._chance.choice([*self.sites, *self.workers]).set_clock(self._chance.choice(self.shifts))

    def _kill(self, running: Running) -> None:
        what = "a site" if running in self.sites else "a worker"
        if running.process is None or running.process.poll() is not None:
            return
        number = signal.SIGTERM if self._chance.random() < 0.25 else signal.SIGKILL
        self.counted[f"{number.name} to {what}"] += 1
        young = boottime() - running.since < YOUNG
        code = running.end(number)
        if number is signal.SIGTERM and code != 0 and not (young and code == -signal.SIGTERM):
            self.wrong(f"{running.life} ended with {code} after SIGTERM")
        running.start(self._chance.choice(self.shifts))

    def _restart_what_ended(self) -> None:
        for running in (*self.sites, *self.workers):
            if running.process is not None and (code := running.process.poll()) is not None:
                running.gone()
                self.wrong(f"{running.life} ended by itself with {code}: see {running.said}")
                running.start(0)

    def _sample(self) -> None:
        for site in self.sites:
            if (size := site.memory()) is not None:
                self._samples[site.life].append((boottime(), size))
        try:
            statuses = self._store.snapshot(self.ids, preview=0).queues
        except StoreError as error:
            self.wrong(f"a sample failed: {error}")
            return
        self._depth = sum(status.totals.ready for status in statuses.values())
        self._sums += 1
        for status in statuses.values():
            totals = status.totals
            there = totals.ready + totals.delayed + totals.leased + totals.dead
            gone = totals.traffic.get("push", 0) - totals.traffic.get("ack", 0)
            if there != gone:
                self.wrong(f"{status.name}: {there} items in all states, {gone} pushed and not acknowledged")
        say(
            f"{self._line('ready', statuses)}; {self._line('dead', statuses)}; "
            f"killed {sum(self.counted.values())}; attempts logged {sum(1 for _ in self.folder.glob('*.attempts'))}"
        )

    @staticmethod
    def _line(state: str, statuses: Mapping[int, Any]) -> str:
        return f"{state} " + " ".join(str(getattr(status.totals, state)) for status in statuses.values())

    def _drain(self) -> None:
        say("nothing is killed any more")
        for importer in self.importers:
            importer.ending.set()
        for importer in self.importers:
            importer.join(DRAINED)
            if importer.is_alive():
                self.wrong(f"{importer.name} did not finish its file")
        until, next_sample = time.monotonic() + DRAINED, 0.0
        while (left := self._left()) and time.monotonic() < until:
            self._restart_what_ended()
            if time.monotonic() >= next_sample:
                next_sample = time.monotonic() + SAMPLE_EVERY
                self._sample()
            time.sleep(0.5)
        if left:
            self.wrong(f"{left} items were still ready, delayed or leased after {DRAINED:.0f} s")
        until = time.monotonic() + SWEPT
        while self._store.doctor.examine().findings and time.monotonic() < until:
            time.sleep(SAMPLE_EVERY)
        for viewer in self.viewers:
            viewer.ending.set()
            viewer.join(ENDED)
        for running in (*self.workers, *self.sites):
            if (code := running.end(signal.SIGTERM)) != 0:
                self.wrong(f"{running.life} ended with {code} after the last SIGTERM")

    def _left(self) -> int:
        totals = [status.totals for status in self._store.snapshot(self.ids, preview=0).queues.values()]
        return sum(one.ready + one.delayed + one.leased for one in totals)

    # The verdict

    def _judge(self) -> list[Line]:
        attempts = verdict.read_attempts(sorted(self.folder.glob("*.attempts")))
        judged = verdict.judge_effects(self._expected, effects(self._store, self.run_name))
        over = verdict.overlaps(attempts, self.lives, LEASED)
        dead, pushed, acked = self._dead(), self._traffic("push"), self._traffic("ack")
        audited, found = self._audited(), self._store.doctor.examine()
        lines = [Line(what, str(count)) for what, count in sorted(self.counted.items())]
        lines += [
            Line("processes started", str(len(self.lives))),
            Line("imports resumed behind committed lines", str(self._resumed())),
            Line("values expected to be completed", str(len(self._expected))),
            Line("attempts", str(len(attempts))),
            Line("overlaps of attempts behind a kill or stop", str(over.after_an_end)),
            Line("overlaps of attempts of living processes", _by_kind(over.beside_the_living)),
            self._none("lost", judged.lost),
            self._none("done twice", judged.twice),
            self._none("done, never pushed", judged.from_nowhere),
            self._none("equal ids, or values pushed twice", verdict.wrong_ids(attempts)),
            self._none("begun though completed", verdict.begun_after_done(attempts)),
            self._none("begun before due", verdict.begun_early(attempts)),
            self._none("leases held by two", over.wrong),
            self._none("dead that should not be", sorted(dead - self._poison)),
            self._none("not dead that should be", sorted(self._poison - dead)),
            Line("samples of sums", str(self._sums)),
            Line("imported by the audit", f"{audited} of {self._imported}", audited == self._imported),
            Line("pushed by the counters", f"{pushed} of {self._pushed.total()}", pushed == self._pushed.total()),
            Line("acknowledged by the counters", f"{acked} of {len(self._expected)}", acked == len(self._expected)),
            self._none("processes left behind", self._left_behind()),
            self._none("doctor's findings", [str(finding) for finding in found.findings]),
        ]
        for viewer in self.viewers:
            lines.append(Line(f"{viewer.name}: frames", str(viewer.frames), viewer.frames > 0))
            lines += [
                Line(f"{viewer.name}: longest without {what}", f"{longest:.1f} s", longest < SILENT)
                for what, longest in viewer.longest.items()
            ]
        lines += [self._memory(site) for site in self.sites]
        return [*lines, self._none("anything else wrong", self.wrongs)]

    @staticmethod
    def _none(what: str, found: Sequence[str]) -> Line:
        for one in found[:20]:
            say(f"{what}: {one}")
        return Line(what, str(len(found)), not found)

    def _dead(self) -> set[str]:
        names: set[str] = set()
        for kind in LEASED:
            cursor: str | None = None
            while True:
                page = self._store.queue(f"{self.run_name}:{kind}").dead(limit=500, after=cursor)
                names |= {json.loads(item.value)["name"] for item in page.items}
                if (cursor := page.cursor) is None:
                    break
        return names

    def _traffic(self, verb: str) -> int:
        statuses = self._store.snapshot(self.ids, preview=0).queues.values()
        return sum(status.totals.traffic.get(verb, 0) for status in statuses)

    def _audited(self) -> int:
        """Return how many items the audit says were imported: a record whose id was minted again would be missing."""
        count = 0
        for kind in LEASED:
            cursor: str | None = None
            while True:
                page = self._store.audit.entries(queue=f"{self.run_name}:{kind}", limit=1_000, after=cursor)
                count += sum(entry.count for entry in page.entries if entry.verb == "push")
                if (cursor := page.cursor) is None:
                    break
        return count

    def _left_behind(self) -> list[str]:
        """Return processes of this run that outlive those that started them, after they had time to end."""
        until = time.monotonic() + ENDED
        while (found := _started_in(self.folder)) and time.monotonic() < until:
            time.sleep(0.5)
        return found

    def _resumed(self) -> int:
        logs = (importer.running.said for importer in self.importers)
        return sum(log.read_bytes().count(b"Resuming after line") for log in logs if log.exists())

    def _memory(self, site: Running) -> Line:
        what, seen = f"{site.name}: memory", self._samples[site.life]
        found = verdict.memory(seen) if seen else None
        if found is None:
            return Line(what, "not watched for long enough")
        thirds = ", ".join(f"{size / 1e6:.1f}" for size in (found.first, found.middle, found.last))
        told = f"{thirds} MB in {found.seconds / 60:.1f} min, {found.slope / 1e6:+.3f} MB a minute"
        return Line(what, told, not found.grows if found.judged else None)


def say(line: str) -> None:
    """Print at once, with the time."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def print_table(lines: Sequence[Line]) -> None:
    """Print what was seen."""
    width = max(len(line.what) for line in lines)
    marks = {None: "", True: "  well", False: "  WRONG"}
    for line in lines:
        sys.stdout.write(f"{line.what:<{width}}  {line.seen}{marks[line.well]}\n")


def _by_kind(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common()) or "0"


def _started_in(folder: Path) -> list[str]:
    """Return the processes whose wall clock goes by a file in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"WALL_CLOCK_FILE={folder}/".encode() in (process / "environ").read_bytes():
                found.append(f"{process.name} {(process / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
    return found


def main() -> int:
    """Run it and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, help="instead of --minutes")
    parser.add_argument("--store", default="", help="a store URL; empty: an embedded store in the run's folder")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--rate", type=float, default=60.0, help="items a second that are imported (default: 60)")
    parser.add_argument("--kill-every", type=float, default=8.0, metavar="SECONDS")
    parser.add_argument("--shift", type=int, default=3600, metavar="SECONDS", help="by which clocks are off")
    parser.add_argument("--folder", type=Path, help="where logs go; kept (default: a temporary one)")
    options = parser.parse_args()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="two-sites-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    url = options.store or f"lmdb:{folder / 'store'}"
    seconds = options.minutes * 60 if options.seconds is None else options.seconds
    say(f"seed {options.seed}, {seconds:.0f} s, {url.partition(':')[0]} store, logs in {folder}")
    soak = Soak(
        url,
        folder,
        seconds=seconds,
        seed=options.seed,
        rate=options.rate,
        kill_every=options.kill_every,
        shift=options.shift,
    )
    lines = soak.run()
    print_table(lines)
    wrong = any(line.well is False for line in lines)
    if not wrong and options.folder is None:
        shutil.rmtree(folder)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
