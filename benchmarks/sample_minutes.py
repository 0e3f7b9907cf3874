"""How calm the overview stays: the sample load in a browser for ten minutes, with 33 rows.

    python -m benchmarks sample_minutes [--minutes 10] [--warm-up 60] [--queues 33] [--leaves 8] [--told]

The page opens `--warm-up` seconds after the load began, when every queue has had traffic. Counted in the page: changes
of the words of verdicts and trends (of each row, and of the tile of levels), layout shifts without input (all of them
added up), long tasks, errors. Of 33 queues the color and the word of each row are recorded once a second and compared
with labels made by hand (`benchmarks.harness.sample_labels`). Then, `--leaves` times, a queue is paused while the
pointer is in the table; after the pointer left, the rows must be in the server's order within two seconds.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import report
from benchmarks.harness.browsing import open_page
from benchmarks.harness.running_site import RunningSite
from benchmarks.harness.sample_labels import LABELS, SERVED, Shown, wrong
from pqadmin.load.run import create_queues
from pqadmin.load.sample import sample_plans, start_sample
from queues import Store, open_store

#: Changes of words in two minutes, summed layout shift, percent of the main thread in long tasks, seconds to the order.
_WORDS_BAR, _SHIFT_BAR, _LONG_BAR, _ORDER_BAR = 30, 0.02, 5.0, 2.0
_WINDOW = 120.0
#: Queues of the load that is labeled.
_LABELED = 33
#: What one reader with a large screen sees.
_SCREEN = {"width": 1440, "height": 1200}
#: Seconds that the pointer stays in the table while a queue is paused or resumed.
_POINTS = 3.0

_OBSERVE = """() => {
    const seen = window.calm = {words: [], shifts: [], long: 0, began: performance.now()};
    const known = new Map();
    const look = () => {
        const texts = [["levels", document.querySelector(".sum .levels")?.textContent]];
        for (const row of document.querySelectorAll("tr[data-queue]")) {
            for (const of of row.querySelectorAll("[data-field=verdict], [data-field=trend]")) {
                texts.push([`${row.dataset.queue} ${of.dataset.field}`, of.textContent]);
            }
        }
        for (const [of, text] of texts) {
            const before = known.get(of);
            known.set(of, text);
            if (before !== undefined && before !== text) seen.words.push([performance.now(), of, before, text]);
        }
    };
    look();
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
    const node = ({node}) => {
        const row = node?.parentElement?.closest("tr, dl > div, section");
        const of = node?.dataset?.field ?? node?.className ?? node?.nodeName;
        return `${row?.dataset.queue ?? row?.id ?? row?.nodeName ?? ""} ${of || node?.nodeName}`;
    };
    const rect = ({x, y, width, height}) => [x, y, width, height].map(Math.round).join();
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) {
            const of = entry.sources.map((it) => `${node(it)} ${rect(it.previousRect)} → ${rect(it.currentRect)}`);
            seen.shifts.push([entry.startTime, entry.value, of.join("; ")]);
        }
    }).observe({type: "layout-shift"});
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) seen.long += entry.duration;
    }).observe({type: "longtask"});
}"""
#: Of each row the level that its shape is painted as, and the first word of its verdict.
_COLORS = """() => {
    const root = getComputedStyle(document.documentElement);
    const paint = document.createElement("i");
    document.body.append(paint);
    const levels = {};
    for (const [level, token] of Object.entries({ok: "good", warning: "warn", critical: "bad", unknown: "soft"})) {
        paint.style.color = root.getPropertyValue(`--${token}`);
        levels[getComputedStyle(paint).color] = level;
    }
    paint.remove();
    return [...document.querySelectorAll("tr[data-queue]")].map((row) => {
        const {backgroundColor, borderTopColor, borderTopWidth} = getComputedStyle(row.querySelector(".shape"));
        const color = parseFloat(borderTopWidth) ? borderTopColor : backgroundColor;
        const idle = row.dataset.mark === "empty" && row.dataset.level === "ok";
        const word = row.querySelector("[data-field=verdict]").textContent.trim().split(/\\s/)[0];
        return [row.dataset.queue, idle ? "ok" : levels[color] ?? color, word];
    });
}"""
_ROWS = "[...document.querySelectorAll('tr[data-queue]')].map((row) => row.dataset.queue)"
#: The rows as the server would send them now.
_SERVED = """async () => {
    const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
    return [...page.querySelectorAll("tr[data-queue]")].map((row) => row.dataset.queue);
}"""


class _Seen(NamedTuple):
    """What a page noted: times in milliseconds of its own clock."""

    words: Sequence[tuple[float, str, str, str]]
    shifts: Sequence[tuple[float, float, str]]
    #: Milliseconds in long tasks, and when noting began and ended.
    long: float
    began: float
    ended: float


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the figures with their bars."""
    parser = argparse.ArgumentParser(prog="sample_minutes", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--warm-up", type=float, default=60.0, help="seconds")
    parser.add_argument("--queues", type=int, default=33)
    parser.add_argument("--leaves", type=int, default=8, help="how often the pointer leaves the table afterwards")
    parser.add_argument("--told", action="store_true", help="print each change of words and the largest shifts")
    options = parser.parse_args(arguments)
    faults: list[str] = []
    with (
        tempfile.TemporaryDirectory() as name,
        RunningSite(Path(name)) as site,
        open_store(site.store_url) as store,
        open_page(site, faults) as page,
        _sample_load(store, site.store_url, options.queues) as started,
    ):
        time.sleep(options.warm_up)
        page.set_viewport_size(_SCREEN)
        page.goto("/")
        page.wait_for_selector("[data-fresh][data-state=live]")
        rows = page.locator("tr[data-queue]").count()
        page.mouse.move(1, 1)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        cpu = [_task_seconds(session)]
        page.evaluate(_OBSERVE)
        began, recording = time.monotonic(), list[Shown]()
        while (left := options.minutes * 60 - (time.monotonic() - began)) > 0:
            recording += (Shown(time.monotonic() - started, *row) for row in page.evaluate(_COLORS))
            page.wait_for_timeout(min(left, 1.0) * 1000)
        calm = _seen(page)
        cpu.append(_task_seconds(session))
        orders = [_leave(page, store, turn) for turn in range(options.leaves)]
        seen = _seen(page)
    windows = _windows(calm)
    shift = sum(value for _, value, _ in seen.shifts)
    share = 100 * calm.long / (calm.ended - calm.began)
    busy = 100_000 * (cpu[1] - cpu[0]) / (calm.ended - calm.began)
    report.heading("Minutes of the sample load")
    print(
        f"{rows} rows for {options.minutes:g} minutes, then the pointer left the table {len(orders)} times. The page's "
        f"main thread used {busy:.1f} % of a core.\n"
    )
    report.table(
        ("changed words per 2 min", "layout shift", "long tasks %", "console errors", "slowest order s"),
        [(", ".join(map(str, windows)), shift, share, len(faults), max(orders, default=0.0))],
    )
    for of, n in Counter(of for _, of, _, _ in calm.words).most_common(5):
        report.note(f"{n} changes: {of}")
    mistaken = wrong(recording) if options.queues == _LABELED else []
    if options.queues == _LABELED:
        _tell_recording(recording)
    for one in mistaken:
        report.note(f"{one.queue} was {one.shown} from {one.first:.0f} to {one.last:.0f} s, right is {one.right}")
    for fault in faults:
        report.note(f"console: {fault}")
    if options.told:
        for at, of, before, after in seen.words:
            report.note(f"{(at - seen.began) / 1000:.1f} s: {of}: {before!r} → {after!r}")
    largest = sorted(seen.shifts, key=lambda shifted: -shifted[1])
    for at, value, of in largest[:20] if options.told else ():
        report.note(f"{(at - seen.began) / 1000:.1f} s: shifted by {value:.5f}: {of}")
    return [
        _at_most("changes of words in 2 minutes", max(windows), _WORDS_BAR, ""),
        _at_most("layout shift, all added up", shift, _SHIFT_BAR, ""),
        _at_most("long tasks of the main thread", share, _LONG_BAR, " %"),
        _at_most("console errors", len(faults), 0, ""),
        _at_most("order after the pointer left, slowest", max(orders, default=0.0), _ORDER_BAR, " s"),
        _at_most(f"wrong colors in {len(recording):,} recorded rows", len(mistaken), 0, ""),
        report.Figure(what="rows", value=str(rows), bar=str(options.queues), met=rows == options.queues),
    ]


@contextmanager
def _sample_load(store: Store, url: str, queues: int) -> Iterator[float]:
    """Run the traffic that the site offers, on so many queues, for as long as it is needed; yield when it began."""
    planned = sample_plans(queues)
    create_queues(store, planned)
    run = start_sample(url, planned)
    try:
        while not run.stats().seconds:
            time.sleep(0.05)
        yield time.monotonic() - run.stats().seconds
    finally:
        run.stop()


def _tell_recording(recording: Sequence[Shown]) -> None:
    """Print what each labeled queue showed, from second to second of the load."""
    spans: dict[str, list[str]] = {}
    last: dict[str, str] = {}
    for at, queue, painted, _ in recording:
        if last.get(queue) != painted:
            spans.setdefault(queue, []).append(f"{painted} from {at:.0f} s")
            last[queue] = painted
    named = [(name, labels, ", ".join(spans.get(name, ["no row"]))) for name, labels in LABELS.items()]
    others = sorted({", ".join(level.split()[0] for level in spans[name]) for name in spans if name not in LABELS})
    named.append((f"the other {len(spans.keys() - LABELS.keys())}", SERVED, "; ".join(others)))
    lines = [
        (name, "; ".join(f"from {label.since:g} s {label.level}: {label.why}" for label in labels), shown)
        for name, labels, shown in named
    ]
    report.table(("queue", "label", "shown"), lines)


def _seen(page: Any) -> _Seen:
    noted = page.evaluate("({...window.calm, ended: performance.now()})")
    return _Seen(**{field: noted[field] for field in _Seen._fields})


def _task_seconds(session: Any) -> float:
    """Return the processor time of the page's main thread so far: other than a task's length, it has no waits."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def _windows(seen: _Seen) -> list[int]:
    """Count the changes of words in each two minutes, what is left over included."""
    found = Counter(int((at - seen.began) / 1000 / _WINDOW) for at, _, _, _ in seen.words)
    last = max([0, *found, round((seen.ended - seen.began) / 1000 / _WINDOW) - 1])
    return [found[window] for window in range(last + 1)]


def _leave(page: Any, store: Store, turn: int) -> float:
    """Change the order while the pointer is in the table; return the seconds after it left until the order is right."""
    names = page.evaluate(_ROWS)
    queue = store.queue(names[-1 - turn % 2])
    page.locator("tr[data-queue] td.ready").first.hover()
    queue.pause(reason="", by="bench")
    page.wait_for_timeout(_POINTS * 1000)
    page.mouse.move(1, 1)
    left = time.monotonic()
    while page.evaluate(_ROWS) != page.evaluate(_SERVED):
        if time.monotonic() - left > 5 * _ORDER_BAR:
            break
        page.wait_for_timeout(50)
    seconds = time.monotonic() - left
    queue.resume()
    page.wait_for_timeout(_POINTS * 1000)
    return seconds


def _at_most(what: str, value: float, bar: float, unit: str) -> report.Figure:
    return report.at_most(what, value, bar, ".3f" if 0 < bar < 1 else ".3g", unit)
