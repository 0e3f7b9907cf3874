"""`python -m benchmarks`: run all measurements and print markdown; some 45 minutes.

`--quick` runs the most important ones, shortened, in some 10 minutes. `NAME …` instead runs the named ones, and
`NAME ARGUMENT …` one with arguments of its own; `NAME --help` tells them. What is not installed is left out and named.
"""

import importlib
import sys
import traceback
from itertools import takewhile
from pathlib import Path

from benchmarks.harness import report

#: Run when none is named.
ALL: dict[str, list[str]] = {
    "shapes": [],
    "batches": [],
    "depths": [],
    "recipes": [],
    "natives": [],
    "local_twin": [],
    "fairness": [],
    "wake_up": [],
    "page_time": [],
}
_SHORT = ["--rounds", "3", "--seconds", "1"]
QUICK: dict[str, list[str]] = {
    "shapes": ["--quick"],
    "batches": ["--callers", "16", *_SHORT],
    "depths": ["--items", "100000", "--calls", "100", "--rounds", "3", "--popped", "50000"],
    "recipes": _SHORT,
    "natives": ["--seconds", "2", "--requests", "5000"],
    "local_twin": ["--rounds", "3"],
    "fairness": ["--seconds", "4"],
}
#: Not measurements.
_PARTS = ("__init__", "__main__")


def main(arguments: list[str]) -> None:
    """Run the named measurements, one with its arguments, or all; exit with 1 when a bar is missed."""
    known = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in _PARTS)
    names = list(takewhile(known.__contains__, arguments))
    own = arguments[len(names) :]
    if arguments in ([], ["--quick"]):
        plan = QUICK if arguments else ALL
    elif names and (len(names) == 1 or not own):
        plan = dict.fromkeys(names, own)
    else:
        raise SystemExit(
            f"usage: python -m benchmarks [--quick | NAME … | NAME ARGUMENT …]; NAME is one of {', '.join(known)}"
        )
    figures: list[report.Figure] = []
    for name, its_own in plan.items():
        try:
            figures += importlib.import_module(f"benchmarks.{name}").main(its_own) or []
        except (Exception, SystemExit) as error:  # the other figures are worth as much without it
            if len(plan) == 1:
                raise
            traceback.print_exc()
            figures.append(report.Figure(what=name, value=f"failed: {type(error).__name__}", met=False))
    if len(plan) != 1 or figures:
        report.summary(figures)
    if not all(figure.met for figure in figures):
        raise SystemExit(1)


main(sys.argv[1:])
