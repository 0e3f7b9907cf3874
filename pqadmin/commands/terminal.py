"""A whole terminal for a command: keys one by one, the alternate screen, and everything as before at the end.

At the end means after an error, a signal, and `kill -9` too: a small shell waits beside the command, and sets the
terminal back when the command is gone without a word.
"""

import os
import select
import signal
import subprocess
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self, TextIO

#: $1: the terminal. $2: its modes. Reads one line when the command ends in order, and nothing when it was killed.
_GUARD = """
trap '' INT TERM HUP QUIT TSTP TTOU
IFS= read -r ended && exit
exec < "$1" > "$1" || exit
stty "$2"
printf '\\033[?1049l\\033[?25h\\033[0m\\r\\n'
"""
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[H", "\x1b[0m\x1b[?1049l\x1b[?25h"
#: Seconds in which the rest of a key's sequence comes, also over a slow line.
_SEQUENCE = 0.05
#: Keys by what a terminal sends for them; any other character is its own name.
_KEYS = {
    b"\x1b[A": "up", b"\x1bOA": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"\x1b[5~": "page-up",
    b"\x1b[6~": "page-down", b"\x1b[H": "home", b"\x1bOH": "home", b"\x1b[1~": "home", b"\x1b[F": "end",
    b"\x1bOF": "end", b"\x1b[4~": "end", b"\r": "enter", b"\n": "enter", b"\x1b": "escape", b"\x7f": "backspace",
    b"\x08": "backspace", b"\x15": "clear", b"\x1a": "suspend",
}  # fmt: skip


class Terminal:
    """The terminal of a command, taken whole for the block of a `with` statement."""

    def __init__(self, stdin: TextIO, stdout: TextIO) -> None:
        self._in = stdin.fileno()
        self._out = stdout
        self._rest = b""
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        os.set_blocking(self._wake_reader, False)

    def __enter__(self) -> Self:
        self._modes = termios.tcgetattr(self._in)
        self._guard = _guard(self._in)
        self._resized = signal.signal(signal.SIGWINCH, lambda number, frame: self.wake())
        self._enter()
        return self

    def __exit__(self, *raised: object) -> None:
        self._leave()
        signal.signal(signal.SIGWINCH, self._resized)
        if self._guard is not None:
            self._guard.communicate(b"ended\n")
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def wake(self) -> None:
        """Let `keys` return at once. Any thread or signal handler may call it."""
        with suppress(BlockingIOError, OSError):  # it is awake already, or over
            os.write(self._wake_writer, b"\0")

    def keys(self, timeout: float) -> list[str]:
        """Wait for keys and return their names: at most so many seconds, or until woken."""
        ready, _, _ = select.select([self._in, self._wake_reader], [], [], timeout)
        if self._wake_reader in ready:
            os.read(self._wake_reader, 4_096)
        if self._in not in ready:
            return []
        data = self._rest + os.read(self._in, 1_024)
        if not data:
            raise EOFError  # the terminal is gone
        while data[-1:] == b"\x1b" and select.select([self._in], [], [], _SEQUENCE)[0]:
            data += os.read(self._in, 1_024)
        names, self._rest = _names(data)
        return names

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Give the terminal back for the block, as for a job that is suspended."""
        self._leave()
        try:
            yield
        finally:
            self._enter()

    def _enter(self) -> None:
        tty.setcbreak(self._in, termios.TCSADRAIN)
        modes = termios.tcgetattr(self._in)
        modes[6][termios.VSUSP] = b"\0"  # Ctrl-Z is a key: the screen is left before the job stops
        termios.tcsetattr(self._in, termios.TCSADRAIN, modes)
        self._out.write(_ENTER)
        self._out.flush()

    def _leave(self) -> None:
        with suppress(OSError, ValueError):  # the terminal may be gone
            self._out.write(_LEAVE)
            self._out.flush()
        with suppress(termios.error):
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._modes)


def _guard(terminal: int) -> subprocess.Popen[bytes] | None:
    """Start the shell that sets a terminal back; None where there is none."""
    try:
        modes = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, text=True, check=True).stdout
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "pqadmin", os.ttyname(terminal), modes.strip()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def _names(data: bytes) -> tuple[list[str], bytes]:
    """Return the names of keys, and the bytes of a character that is not whole yet."""
    names = []
    while data:
        if data[:1] == b"\x1b" and len(data) > 1 and data[1:2] in b"[O":
            size = next((at + 1 for at in range(2, len(data)) if 0x40 <= data[at] <= 0x7E), len(data))
            names.append(_KEYS.get(data[:size], ""))
        elif data[:1] in _KEYS:
            size = 1
            names.append(_KEYS[data[:1]])
        else:
            size = max(1, next(n for n, first in ((4, 0xF0), (3, 0xE0), (2, 0xC0), (1, 0x00)) if data[0] >= first))
            if size > len(data):
                return names, data
            char = data[:size].decode(errors="replace")
            names.append(char if char.isprintable() else "")
        data = data[size:]
    return [name for name in names if name], b""
