"""Processes of the tests that share a store."""

import contextlib
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import await_true

ROOT = Path(__file__).parents[3]


def begin(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Begin a program of this folder and return once it is at work."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.queues.hosting.{program}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout.readline() == "at work\n"
    return process


@contextmanager
def hosting(url: str, *how: str) -> Iterator[subprocess.Popen[str]]:
    """Have another process host a store with an empty queue named jobs."""
    process = begin("host", url, *how)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def host_of(url: str) -> int:
    """Return the process that hosts a store; 0 when none does."""
    for path in sorted(Path(url.removeprefix("lmdb:")).glob("host-*")):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
    return 0


def suspend(process: subprocess.Popen[str]) -> None:
    """Stop a process, and return once all its threads are stopped."""
    process.send_signal(signal.SIGSTOP)
    states = Path(f"/proc/{process.pid}/task")
    await_true(lambda: all(") T " in (thread / "stat").read_text() for thread in states.iterdir()))
