"""How every measurement tells its result: the machine, the versions, the disk's flush time, and a table."""

import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

#: Flushes to measure: their median is steady enough to compare runs.
_FLUSHES = 200


def heading(title: str) -> None:
    """Print the title and when this was measured."""
    print(f"## {title}\n\n{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine()}, {versions()}.\n", flush=True)


def machine() -> str:
    """Return the machine's size and how busy it is."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    busy = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    return f"{cores} cores (load average {busy:.1f}), {pages / 2**30:.0f} GiB, {system}"


def versions(*packages: str) -> str:
    """Return the versions of Python, the store's engine and the packages."""
    found = [f"Python {platform.python_version()}"]
    for package in ("lmdb", *packages):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def flush_ms(folder: Path) -> float:
    """Return the median time of one flush (4 kB written and fdatasync) in a folder, in milliseconds."""
    path = folder / "flush-probe"
    times = []
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        for _ in range(_FLUSHES):
            start = time.perf_counter()
            os.pwrite(descriptor, b"x" * 4096, 0)
            os.fdatasync(descriptor)
            times.append(time.perf_counter() - start)
    finally:
        os.close(descriptor)
        path.unlink()
    return statistics.median(times) * 1000


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a markdown table; numbers are aligned right."""
    rows = [list(row) for row in rows]
    marks = ["---:" if rows and isinstance(rows[0][n], int | float) else "---" for n in range(len(columns))]
    print("| " + " | ".join(columns) + " |")
    print("|" + "|".join(marks) + "|")
    for row in rows:
        print("| " + " | ".join(_cell(cell) for cell in row) + " |")
    print(flush=True)


def _cell(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.1f}" if abs(cell) >= 1 else f"{cell:.3f}"
    if isinstance(cell, int):
        return f"{cell:,}"
    return str(cell).replace("|", "\\|")


def percentile(times: Sequence[float], percent: float) -> float:
    """Return the value that so many percent of the sorted times do not exceed; no number where there are none."""
    ordered = sorted(times)
    return math.nan if not ordered else ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a measurement, and the bar it has to meet, when there is one."""

    what: str
    value: str
    bar: str = ""
    met: bool = True


def at_most(what: str, measured: float, bar: float, spec: str = ".0f", unit: str = "", *, more: str = "") -> Figure:
    """Return a figure that meets its bar up to that; `spec` writes what was measured, and `more` goes behind it."""
    return Figure(what=what, value=f"{measured:{spec}}{unit}{more}", bar=f"≤ {bar:,g}{unit}", met=measured <= bar)


def at_least(what: str, measured: float, bar: float, spec: str = ".0f", unit: str = "", *, more: str = "") -> Figure:
    """Return a figure that meets its bar from that on; otherwise as `at_most`."""
    return Figure(what=what, value=f"{measured:{spec}}{unit}{more}", bar=f"≥ {bar:,g}{unit}", met=measured >= bar)


def summary(figures: Iterable[Figure]) -> None:
    """Print the figures of several measurements in one table."""
    heading("All figures")
    marks = {True: "met", False: "**missed**"}
    table(
        ("what", "measured", "bar", ""),
        [(figure.what, figure.value, figure.bar, marks[figure.met] if figure.bar else "") for figure in figures],
    )


def note(text: str) -> None:
    """Tell what goes on, apart from the result."""
    print(text, file=sys.stderr, flush=True)
