"""The wall clocks that the soak of two sites sets: only they go wrong, at the start and while a process runs."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.soak import wall_clock

CLOCKS = (
    "[time.time(), datetime.datetime.now(datetime.UTC).timestamp(), time.monotonic(), "
    "time.clock_gettime(time.CLOCK_BOOTTIME)]"
)


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler")
def test_only_the_wall_clock_of_a_running_process_is_set(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    wall_clock.set_ahead(clock, 3600)
    with subprocess.Popen(
        [sys.executable, "-c", f"import datetime, time\nwhile input(): print(*{CLOCKS}, flush=True)"],
        env=wall_clock.variables(wall_clock.build(tmp_path), clock),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for ahead in (3600, -3600, 0):
            wall_clock.set_ahead(clock, ahead)
            wall, steady, since_boot = time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
            process.stdin.write("?\n")
            process.stdin.flush()
            seen = [float(word) for word in process.stdout.readline().split()]
            assert seen == pytest.approx([wall + ahead, wall + ahead, steady, since_boot], abs=60)
        process.communicate("\n")
