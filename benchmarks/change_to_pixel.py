"""How long it takes from a commit in another process until it is on a screen.

    python -m benchmarks change_to_pixel [--samples 300] [--queues 50] [--changes 100] [--bar 250] [--store URL]

The real server, a real Chromium with the overview open, `--queues` rows that another process changes at `--changes` a
second. This process pushes to one more queue at random moments and notes the time when the push returns (the commit is
acknowledged). The page notes the time of the first animation frame after the row's depth changed. Both read this
machine's clock; the offset between them is measured and printed, and corrected.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.harness import report
from benchmarks.harness.browsing import clock_offset_ms, open_page
from benchmarks.harness.running_site import RunningSite
from queues import open_store

_NAME = "watched"
#: Seconds between pushes, at least and at most: no multiple of a frame.
_PAUSE = (0.13, 0.57)
_WARM_UP = 10

_OBSERVE = """name => {
    const depth = document.querySelector(`tr[data-queue="${name}"] [data-field=ready]`);
    window.shown = [];
    new MutationObserver(() => {
        const value = Number(depth.dataset.value);
        requestAnimationFrame(() => window.shown.push([value, performance.timeOrigin + performance.now()]));
    }).observe(depth, {attributes: true, attributeFilter: ["data-value"]});
}"""


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the 95th percentile and the console's errors."""
    parser = argparse.ArgumentParser(prog="change_to_pixel", description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--queues", type=int, default=50)
    parser.add_argument("--changes", type=float, default=100.0, help="a second, in the other queues")
    parser.add_argument("--bar", type=float, default=250.0, help="ms, for p95")
    parser.add_argument("--store", default="", help="a store URL; empty: an embedded one in a folder of its own")
    options = parser.parse_args(arguments)
    faults: list[str] = []
    with (
        tempfile.TemporaryDirectory() as name,
        RunningSite(Path(name), store_url=options.store) as site,
        open_page(site, faults) as page,
        _traffic(site, options.queues, options.changes),
    ):
        times, offset = _measure(page, site, options.samples)
    report.heading("Change to pixel")
    print(
        f"{len(times)} pushes, {options.queues} other queues changing at {options.changes:g}/s; the page's clock was "
        f"{offset[0]:+.2f} ms off (± {offset[1]:.2f}), corrected.\n"
    )
    p95 = report.percentile(times, 95)
    report.table(
        ("p50 ms", "p95 ms", "p99 ms", "max ms", "bar (p95)", "console errors"),
        [(report.percentile(times, 50), p95, report.percentile(times, 99), max(times), options.bar, len(faults))],
    )
    for fault in faults:
        report.note(f"console: {fault}")
    return [
        report.at_most("change to pixel, p95", p95, options.bar, unit=" ms"),
        report.Figure(what="change to pixel, console errors", value=str(len(faults)), bar="0", met=not faults),
    ]


def _measure(page: Any, site: RunningSite, samples: int) -> tuple[list[float], tuple[float, float]]:
    random = Random(1)
    acknowledged: dict[int, float] = {}
    with open_store(site.store_url) as store:
        queue = store.create_queue(_NAME)
        page.goto("/")
        page.wait_for_selector("[data-fresh][data-state=live]")
        page.wait_for_selector(f'tr[data-queue="{_NAME}"]')
        page.evaluate(_OBSERVE, _NAME)
        offset = clock_offset_ms(page)
        for depth in range(1, samples + _WARM_UP + 1):
            page.wait_for_timeout(random.uniform(*_PAUSE) * 1000)
            queue.push(b"x", priority=depth)
            acknowledged[depth] = time.time() * 1000
        page.wait_for_selector(f'tr[data-queue="{_NAME}"] [data-field=ready][data-value="{samples + _WARM_UP}"]')
        page.wait_for_timeout(200)
        later = clock_offset_ms(page)
    shown: list[tuple[int, float]] = [tuple(pair) for pair in page.evaluate("window.shown")]
    ahead = (offset[0] + later[0]) / 2
    times = []
    for depth in range(_WARM_UP + 1, samples + _WARM_UP + 1):
        at = next(at for value, at in shown if value >= depth)
        times.append(at - ahead - acknowledged[depth])
    return times, (ahead, max(offset[1], later[1], abs(offset[0] - later[0])))


@contextmanager
def _traffic(site: RunningSite, queues: int, changes: float) -> Iterator[None]:
    """Have other processes change other queues meanwhile."""
    if not queues or not changes:
        yield
        return
    half = str(changes / 2)
    command = [sys.executable, "-m", "pqadmin", "load", "--store", site.store_url, "--queues", str(queues)]
    with subprocess.Popen(
        [*command, "--push-rate", half, "--pop-rate", half], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            time.sleep(3)
            yield
        finally:
            process.terminate()
