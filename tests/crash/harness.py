"""Kills a process in the middle of its work and tells what it had begun and what it had acknowledged.

The work is a function `target(report, *arguments)` of an importable module; it runs in a child process until it is
killed, and tells through `report` what it is about to do and what was acknowledged to it. The reports go through a
pipe, outside the store, and outlive the child:

    killed = kill_during("tests.crash.programs:push", url, "8", after=500)
    assert killed.acknowledged <= what_is_in_the_store() <= killed.begun
"""

import importlib
import itertools
import math
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Report:
    """The child's side: one atomic line per event, safe from any thread."""

    def __init__(self, most: float = math.inf) -> None:
        self._most = most
        self._acknowledged = itertools.count(1)

    def begin(self, label: str) -> None:
        """Say that `label` is about to be done."""
        os.write(1, f"begin {label}\n".encode())

    def acknowledge(self, label: str) -> None:
        """Say that `label` was acknowledged as done; calls after the last allowed one wait for the kill."""
        if next(self._acknowledged) > self._most:
            threading.Event().wait()
        os.write(1, f"done {label}\n".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """What a killed child had reported."""

    begun: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)

    @property
    def in_flight(self) -> set[str]:
        """What had begun and was not acknowledged: it may be done or not."""
        return self.begun - self.acknowledged


def kill_during(target: str, *arguments: str, after: int, most: float = math.inf) -> Killed:
    """Run `target` in a child process and kill it with SIGKILL right after so many acknowledgements.

    `most`: no more are given, however late the kill comes, for work that has an end.
    """
    killed = Killed()
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.harness", f"{most}", target, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with child.stdout as reports:
        for line in reports:
            event, _, label = line.rstrip("\n").partition(" ")
            if not line.endswith("\n"):
                break  # cut off by the kill: it counts as not reported
            (killed.begun if event == "begin" else killed.acknowledged).add(label)
            if len(killed.acknowledged) == after:
                child.kill()
    if child.wait() != -9:
        raise AssertionError(
            f"The child ended by itself ({child.returncode}) after {len(killed.acknowledged)} reports."
        )
    return killed


def _main() -> None:
    module, _, name = sys.argv[2].partition(":")
    getattr(importlib.import_module(module), name)(Report(float(sys.argv[1])), *sys.argv[3:])


if __name__ == "__main__":
    _main()
