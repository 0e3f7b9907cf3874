"""Whether memory stays flat: a page that is open for ten minutes of load, and the server behind it.

    python -m benchmarks memory_flat [--minutes 10] [--first 2] [--queues 24] [--rate 100]

The browser's heap is measured after a forced garbage collection, the server's memory from /proc: the resident set and,
apart from it, the anonymous part (what the process itself holds; the rest is the store's file and libraries, which the
system drops when it needs the room). Measured at `--first` minutes and at the end.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import report
from benchmarks.harness.browsing import open_page
from benchmarks.harness.running_site import RunningSite

#: MB that the last measurement may lie above the first.
_BROWSER_BAR, _SERVER_BAR = 5.0, 10.0


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return what grew and the console's errors."""
    parser = argparse.ArgumentParser(prog="memory_flat", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=float, default=2.0)
    parser.add_argument("--queues", type=int, default=24)
    parser.add_argument("--rate", type=float, default=100.0, help="pushes and pops a second, each")
    options = parser.parse_args(arguments)
    faults: list[str] = []
    seen: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as name, RunningSite(Path(name)) as site:
        load = [sys.executable, "-m", "pqadmin", "load", "--store", site.store_url, "--queues", str(options.queues)]
        load += ["--push-rate", str(options.rate), "--pop-rate", str(options.rate)]
        with subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                with open_page(site, faults) as page:
                    page.goto("/")
                    page.wait_for_selector("[data-fresh][data-state=live]")
                    session = page.context.new_cdp_session(page)
                    session.send("Performance.enable")
                    began = time.monotonic()
                    for minutes in (options.first, (options.first + options.minutes) / 2, options.minutes):
                        while (left := minutes * 60 - (time.monotonic() - began)) > 0:
                            page.wait_for_timeout(min(left, 5.0) * 1000)
                        seen.append((minutes, *browser_memory(session), *_server(site.pid)))
                    state = page.get_attribute("[data-fresh]", "data-state")
            finally:
                process.terminate()
    report.heading("Memory over time")
    report.table(
        ("minute", "browser heap MB", "DOM nodes", "listeners", "server resident MB", "server anonymous MB"), seen
    )
    browser, resident, anonymous = (seen[-1][n] - seen[0][n] for n in (1, 4, 5))
    print(
        f"Grown: browser {browser:+.1f} MB (bar {_BROWSER_BAR}), server resident {resident:+.1f} MB, anonymous "
        f"{anonymous:+.1f} MB (bar {_SERVER_BAR}). Page {state}, console errors: {len(faults)}.\n"
    )
    if state != "live":
        raise SystemExit(f"missed: the page is {state}")
    for fault in faults:
        report.note(f"console: {fault}")
    return [
        _grown("browser's heap", browser, _BROWSER_BAR),
        _grown("server's anonymous memory", anonymous, _SERVER_BAR),
        report.Figure(what="memory, console errors", value=str(len(faults)), bar="0", met=not faults),
    ]


def _grown(what: str, megabytes: float, bar: float) -> report.Figure:
    return report.at_most(f"{what}, grown", megabytes, bar, "+.1f", " MB")


def browser_memory(session: Any) -> tuple[float, float, float]:
    """Return a page's heap in MB after a garbage collection, its DOM nodes and its listeners."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return metrics["JSHeapUsedSize"] / 1e6, metrics["Nodes"], metrics["JSEventListeners"]


def _server(pid: int) -> tuple[float, float]:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines())
    return tuple(int(fields[name].split()[0]) / 1000 for name in ("VmRSS", "RssAnon"))
