"""The measurement `pairs` by 64 threads with every flush of all processes slowed by 4 ms, as on a slow disk.

python -m benchmarks slow_disk [the arguments of pairs]
"""

from benchmarks import pairs
from benchmarks.harness import report


def main(arguments: list[str]) -> list[report.Figure]:
    """Measure, print, and return the ratio with its bar."""
    return pairs.main(["--flush-ms", "4", "--callers", "64", "--processes", "1", *arguments])
