"""`python -m benchmarks [NAME [ARGUMENT …]]`: run the quick measurements, or the named one, and print markdown."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks import report

#: Run when none is named: together a few minutes.
QUICK = ("pairs", "fairness", "page_time")
#: Not measurements.
_PARTS = ("__init__", "__main__", "browsing", "report", "running_site")


def main(arguments: list[str]) -> None:
    """Run the named measurement with its arguments, or all quick ones; exit with 1 when a bar is missed."""
    known = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in _PARTS)
    if arguments and arguments[0] not in known:
        raise SystemExit(f"usage: python -m benchmarks [NAME [ARGUMENT …]]; NAME is one of {', '.join(known)}")
    figures: list[report.Figure] = []
    for name in arguments[:1] or QUICK:
        figures += importlib.import_module(f"benchmarks.{name}").main(arguments[1:]) or []
    if not arguments:
        report.summary(figures)
    if not all(figure.met for figure in figures):
        raise SystemExit(1)


main(sys.argv[1:])
