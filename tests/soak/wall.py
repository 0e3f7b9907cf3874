"""A wall without keyboard, while its server is restarted and its store goes away.

    python -m tests.soak.wall [--minutes 10] [--store fdb:CLUSTER_FILE] [--stop-store COMMAND --start-store COMMAND]

A link lets a screen in; from then on it is only looked at. Queues change ten times a second, and one is paused and
goes on in turn. A third of the way the server ends as Ctrl-C ends it and starts again ten seconds later (a deploy); at
two thirds, with both commands, the store is away for thirty seconds. Prints when the screen said that its data is old,
how old, and when it was live again; exits with 1 when it did not come back by itself, or showed what is not so.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from queues import Store, open_store
from queues.errors import QueueError, StoreError
from tests.browser import conftest
from tests.browser.conftest import ARGUMENTS, Site, sign_in
from tests.browser.wall.test_wall import LIVE, let_in, make_board, new_id

#: Seconds; reached only when something hangs, also on a machine that does much else.
PATIENCE = 180.0
#: Seconds that the server and the store are away.
DEPLOY, OUTAGE = 10.0, 30.0
#: Notes what the screen says of its data, whenever that changes.
LISTEN = """() => {
    window.mark = 'the same document';
    window.told = [];
    const note = () => {
        const veil = document.querySelector('[data-part=veil]');
        const says = veil.hidden ? '' : veil.innerText.replace(/\\s+/g, ' ');
        const last = window.told.at(-1);
        if (last?.[1] !== says) window.told.push([Date.now(), says]);
    };
    new MutationObserver(note).observe(document.querySelector('[data-part=veil]'),
        {attributes: true, childList: true, characterData: true, subtree: true});
}"""


class Pusher(threading.Thread):
    """Pushes ten times a second, and pauses one queue after the other; waits while the store is away."""

    def __init__(self, store: Store) -> None:
        super().__init__(daemon=True)
        self.store = store
        self.end = threading.Event()
        self.pushed = 0

    def run(self) -> None:
        """Go on until told to end."""
        turn = 0
        while not self.end.wait(0.1):
            turn += 1
            try:
                self.store.queue(f"hall:{turn % 8}").push(b"v", priority=turn % 9)
                self.pushed += 1
                if turn % 30 == 0:
                    self.store.queue(f"hall:{turn // 30 % 8}").pause(reason="a turn", by="soak")
                    self.store.queue(f"hall:{(turn // 30 - 1) % 8}").resume()
            except (StoreError, QueueError, TimeoutError):
                continue


def watch(screen: Page, what: str, away: Callable[[], None], back: Callable[[], None], seconds: float) -> None:
    """Take something away for so many seconds, and wait for the screen to say so and to be live again by itself."""
    screen.evaluate(LISTEN)
    began = time.time()
    away()
    screen.wait_for_timeout(seconds * 1000)
    # Now, since a page that loads itself anew when it can has nothing of this any more.
    told = [(at / 1000 - began, says) for at, says in screen.evaluate("window.told ?? []")]
    back()
    returned = time.time()
    if not told or not told[-1][1]:
        raise SystemExit(f"missed: the screen did not say that its data is old while {what} was away: {told}")
    screen.wait_for_selector(LIVE)
    live = time.time()
    same = screen.evaluate("window.mark ?? 'made anew by itself'")
    old = [(at, says) for at, says in told if says]
    say(f"{what}: away for {returned - began:.1f} s; live again {live - returned:.1f} s after it was back; {same}")
    say(f"  old from {old[0][0]:.1f} s on: “{old[0][1]}” … “{old[-1][1]}”")


def say(line: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def truth(store: Store) -> dict[str, int]:
    """Return the depths of the board's queues."""
    return {f"hall:{n}": store.queue(f"hall:{n}").depth() for n in range(8)}


def shown(screen: Page) -> dict[str, int]:
    """Return the depths that the screen shows."""
    tiles: Any = screen.locator(".cell:not([hidden])").evaluate_all(
        "all => all.map((each) => [each.querySelector('.tile-name').textContent,"
        " each.querySelector('[data-field=depth]').textContent])"
    )
    return {name: int(depth.replace("\u202f", "")) for name, depth in tiles}


def main() -> int:
    """Run it and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--store", default="")
    parser.add_argument("--stop-store", default="")
    parser.add_argument("--start-store", default="")
    arguments = parser.parse_args()
    conftest.PATIENCE = PATIENCE
    third = arguments.minutes * 20_000
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = Site(Path(folder), arguments.store)
        site.start()
        path = os.environ.get("PQ_CHROMIUM") or next(
            filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
        )
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            with open_store(site.store_url) as store:
                for n in range(8):
                    store.create_queue(f"hall:{n}")
                admin = browser.new_context(base_url=site.address).new_page()
                admin.set_default_timeout(PATIENCE * 1000)
                sign_in(admin, "admin", site.password)
                address = new_id(admin, make_board(admin, "Hall", "hall:*"))
                admin.close()
                pusher = Pusher(store)
                pusher.start()
                run(browser.new_page(), address, site, store, pusher, third, arguments)
        finally:
            browser.close()
            site.stop()
    return 0


def run(
    screen: Page, address: str, site: Site, store: Store, pusher: Pusher, third: float, arguments: argparse.Namespace
) -> None:
    """Let the screen hang, with both outages, and compare what it shows in the end."""
    screen.set_default_timeout(PATIENCE * 1000)
    faults: list[str] = []
    screen.on("pageerror", lambda error: faults.append(str(error)))
    session = screen.context.new_cdp_session(screen)
    session.send("Performance.enable")

    def memory() -> str:
        session.send("HeapProfiler.collectGarbage")
        metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
        return f"heap {metrics['JSHeapUsedSize'] / 1e6:.2f} MB, {metrics['Nodes']} nodes"

    let_in(screen, address)
    say(f"live; {memory()}")
    screen.wait_for_timeout(third)
    watch(screen, "the server", site.stop, site.start, DEPLOY)
    screen.wait_for_timeout(third)
    if arguments.stop_store:
        commands = [shlex.split(arguments.stop_store), shlex.split(arguments.start_store)]
        stop, start = (lambda command=command: subprocess.run(command, check=True) for command in commands)
        watch(screen, "the store", stop, start, OUTAGE)
    screen.wait_for_timeout(third)
    pusher.end.set()
    pusher.join()
    until = time.monotonic() + PATIENCE
    while shown(screen) != truth(store):
        if time.monotonic() > until:
            raise SystemExit(f"missed: the screen shows {shown(screen)}, there is {truth(store)}")
        screen.wait_for_timeout(100)
    say(f"the screen shows what is there, after {pusher.pushed} pushes; {memory()}; exceptions: {faults}")
    if faults:
        raise SystemExit("missed: exceptions in the page")


if __name__ == "__main__":
    sys.exit(main())
