"""The overview's page against the same page of a plain Django site on Daphne, in alternating rounds of one run.

    python -m benchmarks stock [--queues 1000] [--requests 150] [--rounds 5] [--connections 4] [--keep DIR]

Ours is the real server as a user starts it, with all that it does besides; the other is
`benchmarks.harness.stock_site`: the same number of queues in SQLite, the same markup by a Django template, logged in,
gzip. Nothing changes meanwhile. Requests come from a process of their own over keep-alive connections. The ratio is
that of requests a second, round by round; "server CPU" is each server's processor time for a request.
"""

import argparse
import gzip
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks import page_time
from benchmarks.harness import report
from benchmarks.harness.running_site import RunningSite, cpu_seconds
from pqadmin.load.plan import plans
from queues import open_store

_ROOT = Path(__file__).resolve().parents[1]
_BAR = 3.0


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the verdict."""
    parser = argparse.ArgumentParser(prog="stock", description=__doc__)
    parser.add_argument("--queues", type=int, default=1_000)
    parser.add_argument("--requests", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--keep", help="a folder of `page_time --keep` with so many queues")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = f"lmdb:{options.keep or folder}/store"
        with open_store(url) as store:
            page_time.prepare(store, plans(options.queues - 1, prefix="", seed=page_time.SEED), 1_000, url=url)
        (folder / "ours").mkdir()
        with RunningSite(folder / "ours", store_url=url) as site:
            cookie = site.log_in()
            page_time.request_many(site.host, site.port, "/", 40, 4, cookie)
            page = _page(site.host, site.port, cookie)
            with _stock(folder, page, options.queues) as (pid, port, other):
                page_time.request_many("127.0.0.1", port, "/", 40, 4, other)
                sizes = len(page), len(_page("127.0.0.1", port, other))
                flush = report.flush_ms(folder)
                rounds = []
                for _ in range(options.rounds):
                    ours = _round(site.host, site.port, site.pid, cookie, options)
                    rounds.append((ours, _round("127.0.0.1", port, pid, other, options)))
                    report.note("stock: " + ", ".join(f"{rate:.1f}/s, {cpu:.1f} ms" for rate, cpu in rounds[-1]))
    report.heading("The overview against plain Django on Daphne")
    print(
        f"{options.queues:,} queues, {options.requests} requests a round, {options.connections} connections, pages of "
        f"{sizes[0] / 1000:.0f} and {sizes[1] / 1000:.0f} kB before gzip, "
        f"{report.versions('django', 'channels', 'daphne', 'twisted')}, flush {flush:.2f} ms.\n"
    )
    ratios = [ours[0] / theirs[0] for ours, theirs in rounds]
    report.table(
        ("site", "requests/s", "server CPU ms", "requests/s of each round"),
        [
            (
                title,
                round(median(one[which][0] for one in rounds), 1),
                round(median(one[which][1] for one in rounds), 1),
                " ".join(f"{one[which][0]:.0f}" for one in rounds),
            )
            for which, title in enumerate(("pqadmin", "plain Django"))
        ],
    )
    what = f"overview, requests/s against plain Django on Daphne, {options.queues:,} queues"
    each = f" ({', '.join(f'{one:.1f}' for one in ratios)})"
    return [report.at_least(what, median(ratios), _BAR, ".1f", "×", more=each)]


def _page(host: str, port: int, cookie: str) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=60)
    connection.request("GET", "/", headers={"Cookie": cookie, "Accept-Encoding": "gzip"})
    page = gzip.decompress(connection.getresponse().read()).decode()
    connection.close()
    return page


@contextmanager
def _stock(folder: Path, page: str, queues: int) -> Iterator[tuple[int, int, str]]:
    """Run the plain site with what surrounds the rows of our page; give its process, port and cookie."""
    before, _, rest = page.partition('<tr data-queue="')
    after = rest.rpartition("</tr>")[2]
    rows = re.search(r'ROWS = """(.*?)"""', (_ROOT / "benchmarks" / "harness" / "stock_site.py").read_text(), re.DOTALL)
    assert rows is not None
    (folder / "page.html").write_text(
        f"{{% verbatim %}}{before}{{% endverbatim %}}{rows[1]}{{% verbatim %}}{after}{{% endverbatim %}}"
    )
    environment = os.environ | {"STOCK_FOLDER": str(folder)}
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.harness.stock_site", str(folder), "fill", str(queues)],
        cwd=_ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with (folder / "stock.log").open("w") as log:
        command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "-v", "0"]
        process = subprocess.Popen(
            [*command, "benchmarks.harness.stock_site:application"], cwd=_ROOT, env=environment, stdout=log, stderr=log
        )
        try:
            _wait(port)
            yield process.pid, port, made.stdout.strip()
        finally:
            process.terminate()
            process.wait(30)


def _wait(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=5).connect()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the plain site did not start")


def _round(host: str, port: int, pid: int, cookie: str, options: argparse.Namespace) -> tuple[float, float]:
    """Return requests a second, and milliseconds of the server's processor for each."""
    used = cpu_seconds(pid)
    client = [host, str(port), "/", str(options.requests), str(options.connections), cookie]
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks", "page_time", "--client", *client],
        cwd=_ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found = json.loads(answer.stdout)
    answered = len(found["times"])
    return answered / found["seconds"], 1000 * (cpu_seconds(pid) - used) / answered
