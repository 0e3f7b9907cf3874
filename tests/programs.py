"""Programs that a test runs to their end."""

import subprocess
from typing import Any

from tests.waiting import LONG


def run_to_end(command: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program and return what it printed, as text; raise `TimeoutExpired` if it does not end."""
    return subprocess.run(command, **{"capture_output": True, "text": True, "timeout": LONG} | options)
