"""Durable means: an acknowledgement is given after a flush that began after the write. Seen in the system calls."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.queues.kv.tracing import traced

TOKEN = re.compile(r"token-\d\d-\d\d\d\d;")
THREADS, EACH = 4, 15


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_every_acknowledgement_follows_a_flush_that_began_after_its_write(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.queues.kv.programs", "acknowledge", f"lmdb:{tmp_path}/store"]
    names = "pwrite64,pwritev,write,writev,fdatasync,fsync,msync"
    calls = list(traced([*program, str(THREADS), str(EACH)], tmp_path / "log", names, "-s", "100000"))

    written: dict[str, int] = {}  # token: the end of its first write to the store
    acknowledged: dict[str, int] = {}
    for call in calls:
        if call.name in {"pwrite64", "pwritev", "writev"}:
            for token in TOKEN.findall(call.text):
                written.setdefault(token, call.ended)
        elif call.name == "write" and "ack token" in call.text:
            acknowledged[TOKEN.findall(call.text)[0]] = call.began
    flushes = [call for call in calls if call.name in {"fdatasync", "fsync", "msync"}]
    assert len(acknowledged) == THREADS * EACH
    for token, answered in acknowledged.items():
        flushed = [one for one in flushes if one.began > written[token] and one.ended < answered]
        assert flushed, f"{token} was acknowledged before it was flushed"
