"""`python -m benchmarks [NAME [ARGUMENT …]]`: run the quick measurements, or the named one, and print markdown."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

#: Run when none is named: together a few minutes.
QUICK = ("pairs", "fairness", "page_time")
#: Not measurements.
_PARTS = ("__init__", "__main__", "report")


def main(arguments: list[str]) -> None:
    """Run the named measurement with its arguments, or all quick ones."""
    known = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in _PARTS)
    if arguments and arguments[0] in known:
        importlib.import_module(f"benchmarks.{arguments[0]}").main(arguments[1:])
    elif arguments:
        raise SystemExit(f"usage: python -m benchmarks [NAME [ARGUMENT …]]; NAME is one of {', '.join(known)}")
    else:
        for name in QUICK:
            importlib.import_module(f"benchmarks.{name}").main([])


main(sys.argv[1:])
