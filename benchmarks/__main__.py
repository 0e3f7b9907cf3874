"""`python -m benchmarks`: run the quick measurements and print markdown.

`NAME …` instead runs the named ones, and `NAME ARGUMENT …` one with arguments of its own.
"""

from __future__ import annotations

import importlib
import sys
from itertools import takewhile
from pathlib import Path

from benchmarks import report

#: Run when none is named: together a few minutes.
QUICK = ("pairs", "fairness", "wake_up", "page_time", "local_twin")
#: Not measurements.
_PARTS = ("__init__", "__main__", "browsing", "callers", "report", "rounds", "running_site", "slow_flush")


def main(arguments: list[str]) -> None:
    """Run the named measurements, one with its arguments, or all quick ones; exit with 1 when a bar is missed."""
    known = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in _PARTS)
    names = list(takewhile(known.__contains__, arguments))
    own = arguments[len(names) :]
    if own and len(names) != 1:
        raise SystemExit(f"usage: python -m benchmarks [NAME [ARGUMENT …] | NAME …]; NAME is one of {', '.join(known)}")
    figures: list[report.Figure] = []
    for name in names or QUICK:
        figures += importlib.import_module(f"benchmarks.{name}").main(own) or []
    if len(names) != 1:
        report.summary(figures)
    if not all(figure.met for figure in figures):
        raise SystemExit(1)


main(sys.argv[1:])
