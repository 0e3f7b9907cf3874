"""What the peers' own tools measure: redis-benchmark and pgbench. Reported for orientation, without a bar.

    python -m benchmarks natives [--clients 64] [--seconds 5] [--requests 20000]

They are written in C and pipeline nothing here; so they show what a server gives, not what its Python client does.
"""

import argparse
import csv
import re
import subprocess
import tempfile
from pathlib import Path

from benchmarks.harness import report
from benchmarks.harness.callers import SIZE
from benchmarks.peers import Missing, Peer, open_peers
from benchmarks.peers.server_process import program

_PUSH = "INSERT INTO items (priority, value) VALUES (:priority, convert_to(repeat('x', {size}), 'UTF8'));\n"


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the rates."""
    parser = argparse.ArgumentParser(prog="natives", description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20_000)
    options = parser.parse_args(arguments)
    rows: list[list[object]] = []
    facts = []
    with tempfile.TemporaryDirectory(prefix="pq-bench-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        flush = report.flush_ms(place)
        with open_peers(("redis_aof", "postgres"), place) as peers:
            for kind, peer in peers.items():
                measure = _redis if kind == "redis_aof" else _postgres
                try:
                    rows.append([*measure(peer, place, options)])
                    facts.append(peer.facts)
                except Missing as missing:
                    report.note(f"{kind} is left out: {missing}")
    report.heading(f"What the peers' own tools measure, {options.clients} clients")
    print(f"{SIZE}-byte values, durable as in `shapes`, a flush takes {flush:.2f} ms: " + "; ".join(facts) + ".\n")
    report.table(("tool", "pairs of push and pop a second", "how"), rows)
    return [report.Figure(what=f"{row[0]}, pairs/s, {options.clients} clients", value=f"{row[1]:,}") for row in rows]


def _redis(peer: Peer, folder: Path, options: argparse.Namespace) -> tuple[str, int, str]:
    tool = program("redis-benchmark", "redis-tools")
    base = [tool, "-p", peer.door.address, "-c", str(options.clients), "-n", str(options.requests), "--csv"]
    value = "__rand_int__".ljust(SIZE, "x")
    pushes = _requests_a_second([*base, "-r", "100000000", "ZADD", "jobs", "__rand_int__", value])
    pops = _requests_a_second([*base, "ZPOPMIN", "jobs"])
    return "redis-benchmark", round(1 / (1 / pushes + 1 / pops)), f"ZADD {pushes:,.0f}/s, ZPOPMIN {pops:,.0f}/s"


def _requests_a_second(command: list[str]) -> float:
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (row,) = csv.DictReader(told.splitlines())
    return float(row["rps"])


def _postgres(peer: Peer, folder: Path, options: argparse.Namespace) -> tuple[str, int, str]:
    from benchmarks.peers.postgres import FOLDERS, POP

    tool = program("pgbench", "postgresql-contrib", *FOLDERS)
    script = folder / "pair.sql"
    script.write_text("\\set priority random(0, 999)\n" + f"{_PUSH.format(size=SIZE)}{POP};\n", encoding="ascii")
    where = dict(pair.split("=") for pair in peer.door.address.split())
    command = [tool, "-h", where["host"], "-p", where["port"], "-U", where["user"], "-n", "-M", "prepared"]
    command += ["-c", str(options.clients), "-j", "2", "-T", str(options.seconds), "-f", str(script), where["dbname"]]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"tps = ([\d.]+)", told)
    if found is None:
        raise RuntimeError(told)
    return "pgbench", round(float(found[1])), "each of a pair a commit of its own, prepared statements"
