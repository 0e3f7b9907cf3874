"""The site's memory allocator, in a process of its own: the setting cannot be taken back."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import re, threading
from pathlib import Path
from pqadmin.server.resources import share_arenas

assert share_arenas()
blocks = []
threads = [threading.Thread(target=lambda: blocks.append([bytes(600) for _ in range(20_000)])) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
import ctypes
ctypes.CDLL(None).malloc_stats()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such setting")
def test_sixteen_threads_share_two_arenas() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    arenas = [line for line in done.stderr.splitlines() if line.startswith("Arena")]
    assert 1 <= len(arenas) <= 2
