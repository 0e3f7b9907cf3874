"""Whether a wall stays flat: ten frames a second for half an hour, with queues that come, go and stop.

    python -m benchmarks wall_flat [--minutes 30] [--first 2] [--queues 60] [--rate 100]

The board is made and the link minted through the pages, the screen has no login. Its heap is measured after a forced
garbage collection at `--first` minutes, half-way and at the end; the frames are counted as the browser receives them.
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
from benchmarks.memory_flat import browser_memory
from queues import Store, open_store

#: MB and DOM nodes that the last measurement may lie above the first; frames a second there should be.
_HEAP_BAR, _NODES_BAR, _FRAMES_BAR = 2.0, 100, 8.0
#: What the screen says of its data, where that is not current.
_SAYS = "() => { const veil = document.querySelector('[data-part=veil]'); return veil.hidden ? '' : veil.innerText; }"
#: Seconds between two changes of what the screen has tiles for.
_CHURN_EVERY = 3.0


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return what grew."""
    parser = argparse.ArgumentParser(prog="wall_flat", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--first", type=float, default=2.0)
    parser.add_argument("--queues", type=int, default=60)
    parser.add_argument("--rate", type=float, default=100.0, help="pushes and pops a second, each")
    parser.add_argument("--store", default="", help="a store URL; empty: an embedded one in a folder of its own")
    options = parser.parse_args(arguments)
    faults: list[str] = []
    seen: list[tuple[float, ...]] = []
    old: list[tuple[float, str]] = []
    frames = 0

    def count(event: dict[str, Any]) -> None:
        nonlocal frames
        frames += event["response"]["payloadData"].startswith('{"t":"wall"')

    with tempfile.TemporaryDirectory() as name, RunningSite(Path(name), store_url=options.store) as site:
        load = [sys.executable, "-m", "pqadmin", "load", "--store", site.store_url, "--queues", str(options.queues)]
        load += ["--push-rate", str(options.rate), "--pop-rate", str(options.rate)]
        with subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                with open_page(site, faults, role="admin") as page, open_store(site.store_url) as store:
                    browser = page.context.browser
                    assert browser is not None
                    address = _link(page)
                    context = browser.new_context(viewport={"width": 1920, "height": 1080})
                    screen = context.new_page()
                    screen.on("pageerror", lambda error: faults.append(str(error)))
                    session = context.new_cdp_session(screen)
                    session.on("Network.webSocketFrameReceived", count)
                    for domain in ("Network", "Performance"):
                        session.send(f"{domain}.enable")
                    screen.goto(address)
                    screen.click("button")  # the page's one button
                    screen.wait_for_selector("body[data-fresh-state=live]")
                    began, churned = time.monotonic(), 0
                    for minutes in (options.first, (options.first + options.minutes) / 2, options.minutes):
                        while (left := minutes * 60 - (time.monotonic() - began)) > 0:
                            churned += 1
                            _churn(store, churned)
                            if says := screen.evaluate(_SAYS):
                                old.append((time.monotonic() - began, says))
                            screen.wait_for_timeout(min(left, _CHURN_EVERY) * 1000)
                        seen.append((minutes, *browser_memory(session), frames))
                    state = screen.get_attribute("body", "data-fresh-state")
                    context.close()
            finally:
                process.terminate()
    report.heading("A wall over time")
    report.table(("minute", "browser heap MB", "DOM nodes", "listeners", "frames"), seen)
    heap, nodes, listeners = (seen[-1][n] - seen[0][n] for n in (1, 2, 3))
    rate = (seen[-1][4] - seen[0][4]) / max(1.0, (seen[-1][0] - seen[0][0]) * 60)
    print(
        f"Grown: heap {heap:+.2f} MB, nodes {nodes:+.0f}, listeners {listeners:+.0f}; {rate:.1f} frames/s; {churned} "
        f"changes of what is shown. The screen is {state}, and was found old {len(old)} times; errors: {len(faults)}.\n"
    )
    for at, says in old:
        report.note(f"at {at:.0f} s: {' '.join(says.split())}")
    if state != "live":
        raise SystemExit(f"missed: the screen is {state}")
    for fault in faults:
        report.note(f"console: {fault}")
    return [
        report.at_most("wall's heap, grown", heap, _HEAP_BAR, "+.2f", " MB"),
        report.at_most("wall's DOM nodes, grown", nodes, _NODES_BAR, "+.0f"),
        report.at_least("wall's frames a second", rate, _FRAMES_BAR, ".1f"),
    ]


def _link(page: Any) -> str:
    page.goto("/boards/new/")
    page.fill("#board-name", "Wall")
    page.click("text=Make the board")
    page.wait_for_selector("#link-label")
    page.fill("#link-label", "the bench")
    page.click("button:has-text('Make a link')")
    address: str = page.locator("#minted").text_content()
    return address


def _churn(store: Store, turn: int) -> None:
    """Pause one queue and let another go on, and have one come and go."""
    names = sorted(name for name in store.directory() if not name.startswith("bench:"))
    if not names:
        return
    store.queue(names[turn % len(names)]).pause(reason=f"turn {turn}", by="bench")
    store.queue(names[(turn - 1) % len(names)]).resume()
    guest = f"bench:guest-{turn % 2}"
    if guest in store.directory():
        store.delete_queue(guest)
    else:
        store.create_queue(guest).push(b"v", priority=1)
