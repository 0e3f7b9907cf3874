"""The server's timers go by elapsed time: setting the machine's clock neither stops them nor sets them off."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.programs import run_to_end

PROGRAM = """
import sys, time
from pathlib import Path
import django
django.setup()
from pqadmin.server.daphne_server import reactor
before = time.time()
reactor.callLater(0.2, lambda: (print("called", flush=True), reactor.stop()))
reactor.callLater(600, lambda: (print("early", flush=True), reactor.stop()))
Path(sys.argv[1]).write_text(sys.argv[2])
reactor.callWhenRunning(lambda: print("moved", round((time.time() - before) / 3600), flush=True))
reactor.run(installSignalHandlers=False)
"""


@pytest.mark.skipif(shutil.which("faketime") is None, reason="no faketime")
@pytest.mark.parametrize(("step", "hours"), [("-1h", "-1"), ("+1h", "1")])
def test_timers_run_on_when_the_machines_clock_is_set(tmp_path: Path, step: str, hours: str) -> None:
    stamp = tmp_path / "time"
    stamp.write_text("+0")
    done = run_to_end(
        ["faketime", "-f", "+0", "env", "-u", "FAKETIME", sys.executable, "-c", PROGRAM, str(stamp), step],
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "pqadmin.settings",
            "PQADMIN_DATA": str(tmp_path),
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_TIMESTAMP_FILE": str(stamp),
            "FAKETIME_NO_CACHE": "1",
        },
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["moved", hours, "called"]
