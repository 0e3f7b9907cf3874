"""A command on a terminal of its own: keys to it, and what its screen shows."""

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.commands.conftest import ROOT
from tests.waiting import LONG

#: Makes the terminal the one that signals by keys, then runs the command.
_PROGRAM = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from pqadmin.cli import main
main()
"""
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class OnTerminal:
    """A process on a terminal."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int, slave: int) -> None:
        self.process = process
        self.written = b""
        self._terminal = terminal
        self._slave = slave

    @property
    def modes(self) -> list[Any]:
        """The terminal's modes."""
        return termios.tcgetattr(self._slave)

    @property
    def screen(self) -> list[str]:
        """The lines of the last screen that is written whole."""
        frames = self.written.decode(errors="ignore").split("\x1b[H")
        whole = [frame for frame in frames if frame.endswith("\x1b[J") or "\x1b[J\x1b" in frame]
        return _CODES.sub("", whole[-1].partition("\x1b[J")[0]).replace("\r", "").split("\n") if whole else []

    @property
    def text(self) -> str:
        """The last screen in one text."""
        return "\n".join(self.screen)

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    def until(self, seen: Callable[[], object]) -> None:
        """Read what the process writes until something is seen."""
        deadline = time.monotonic() + LONG
        while not seen():
            assert time.monotonic() < deadline, f"it does not come to that; the screen:\n{self.text}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                self.written += os.read(self._terminal, 65_536)

    def shows(self, words: str) -> None:
        """Wait until the screen shows these words."""
        self.until(lambda: words in self.text)


@contextmanager
def on_terminal(*arguments: str, columns: int = 80, lines: int = 24, **variables: str) -> Iterator[OnTerminal]:
    """Start a command on a terminal of this size; kill it when the test leaves it running."""
    terminal, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"} | variables,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    started = OnTerminal(process, terminal, slave)
    started.resize(columns, lines)
    try:
        yield started
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(LONG)
        os.close(terminal)
        os.close(slave)
