"""The machine's count: one for all containers that share a store."""

import shutil
import subprocess
import sys

import pytest

from queues.kv import boottime
from tests.programs import run_to_end

#: Seconds by which the clocks of the other container are moved.
MOVED = 1_000_000
OTHER = ["unshare", "--time", f"--boottime={MOVED}", "--fork"]
COUNT = "from queues.kv import boottime; count = boottime.count(); print(count.epoch, count.micros)"


def other_namespaces() -> bool:
    """Tell whether a process may have a time namespace of its own here."""
    return shutil.which("unshare") is not None and not subprocess.run([*OTHER, "true"], capture_output=True).returncode


@pytest.mark.skipif(not other_namespaces(), reason="needs the right to make a time namespace")
def test_a_process_in_a_time_namespace_counts_like_the_rest() -> None:
    before = boottime.count()
    epoch, micros = run_to_end([*OTHER, sys.executable, "-c", COUNT], check=True).stdout.split()
    after = boottime.count()
    assert before.epoch == epoch == after.epoch
    assert before.micros - 1e6 <= int(micros) <= after.micros + 1e6
