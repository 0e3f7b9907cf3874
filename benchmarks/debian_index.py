"""Debian's package index as queues: one queue for each section, priority = Installed-Size, value = the record as JSON.

Reads `apt-cache dumpavail` (run `apt-get update` first) or a Packages file, writes one NDJSON file for each section,
imports each with `import_items`, and shows the counts, the smallest and the largest package of every section.

    python -m benchmarks debian_index [--packages FILE] [--store URL]
"""

import argparse
import io
import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import django
from django.core.management import call_command

from benchmarks.harness import report
from queues import Item, Store, open_store

_PREFIX = "debian:"


def main(arguments: list[str]) -> None:
    """Import the index and print what is in the queues."""
    parser = argparse.ArgumentParser(prog="debian_index", description=__doc__)
    parser.add_argument("--packages", type=Path, help="a Packages file (default: apt-cache dumpavail)")
    parser.add_argument("--store", metavar="URL", help="keep the queues here (default: a store that is removed)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store_url = options.store or f"lmdb:{folder}/store"
        files = Path(folder) / "sections"
        files.mkdir()
        with _index(options.packages) as lines:
            counts, without_size = write_sections(records(lines), files)
        seconds = import_sections(files, sorted(counts), store_url)
        report.heading("Debian's package index, one queue for each section")
        total = counts.total()
        print(
            f"{total:,} packages in {len(counts)} queues, imported by `import_items` in {seconds:.1f} s: "
            f"{total / seconds:,.0f} items/s (commits of 500; flush {report.flush_ms(Path(folder)):.2f} ms). "
            f"{without_size} packages without Installed-Size have priority 0.\n"
        )
        with open_store(store_url) as store:
            show(store, counts)


@contextmanager
def _index(path: Path | None) -> Iterator[Iterable[str]]:
    if path is not None:
        with path.open(encoding="utf-8") as lines:
            yield lines
        return
    process = subprocess.Popen(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    with process:
        assert process.stdout is not None
        yield process.stdout
    if process.returncode != 0:
        raise SystemExit("apt-cache dumpavail failed")


def records(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield every paragraph of a Packages file as its fields."""
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if fields:
                yield fields
            fields = {}
        elif line[0] in " \t":
            fields[name] += "\n" + line.strip()
        else:
            name, _, text = line.partition(":")
            fields[name] = text.strip()
    if fields:
        yield fields


def write_sections(packages: Iterable[dict[str, str]], folder: Path) -> tuple[Counter[str], int]:
    """Write one NDJSON file for each section; return the packages of each queue and how many tell no size."""
    counts: Counter[str] = Counter()
    without_size = 0
    with ExitStack() as stack:
        files: dict[str, IO[str]] = {}
        for package in packages:
            queue = _PREFIX + package.get("Section", "unknown").replace("/", ":")
            if queue not in files:
                files[queue] = stack.enter_context((folder / f"{queue}.ndjson").open("w", encoding="utf-8"))
            without_size += "Installed-Size" not in package
            line = {"priority": int(package.get("Installed-Size", 0)), "value_json": package}
            files[queue].write(json.dumps(line, ensure_ascii=False) + "\n")
            counts[queue] += 1
    return counts, without_size


def import_sections(folder: Path, queues: list[str], store_url: str) -> float:
    """Import every file with `import_items`, all in this process; return the seconds that took."""
    os.environ |= {"PQADMIN_DATA": str(folder.parent / "data"), "DJANGO_SETTINGS_MODULE": "pqadmin.settings"}
    django.setup()
    start = time.monotonic()
    for queue in queues:
        call_command(
            "import_items",
            queue,
            str(folder / f"{queue}.ndjson"),
            create=True,
            strict=True,
            quiet=True,
            store=store_url,
            stdout=io.StringIO(),
        )
    return time.monotonic() - start


def show(store: Store, counts: Counter[str]) -> None:
    """Print the depth and both ends of every queue; stop when a depth is not the number of packages."""
    rows = []
    for name, count in counts.most_common():
        queue = store.queue(name)
        if queue.depth() != count:
            raise SystemExit(f"{name} holds {queue.depth()} items for {count} packages")
        rows.append((name, queue.depth(), _package(queue.peek_min()), _package(queue.peek_max())))
    report.table(("queue", "packages", "smallest (kB installed)", "largest (kB installed)"), rows)


def _package(item: Item | None) -> str:
    if item is None:
        return ""
    return f"{json.loads(item.value)['Package']} ({item.priority:,})"
