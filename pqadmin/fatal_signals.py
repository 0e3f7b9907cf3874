"""A watch over a command that reads an embedded store: a fatal signal in its engine ends it with one line.

LMDB trusts its pages, so a damaged one may end the process by SIGBUS, SIGSEGV or SIGABRT, when no Python code can run
any more. What `faulthandler` writes then goes to a shell that waits for it. Where the engine is on the stack, the shell
writes the line, and a mark by which the store is read whole, by a child process, before it is opened again. Any other
stack it writes as it is: a handler's extension module, say, has crashed.
"""

import ctypes
import faulthandler
import os
import signal
from pathlib import Path

_SHELL = "/bin/sh"
#: Not SIGILL: its number is the exit code of an empty queue.
SIGNALS = (signal.SIGBUS, signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE)
#: In a line of a stack: the file is one of the engine's.
_ENGINE = "/queues/kv/embedded/"
#: $1: the line. $2: the mark. $3: what is in a line of a stack that is in the engine.
_SCRIPT = """
trap '' INT TERM HUP QUIT
IFS= read -r stack || exit 0
case $stack in "Fatal Python error"*) ;; *) exit 0 ;; esac
while IFS= read -r line; do
    case $line in *"$3"*) : > "$2"; printf '%s\\n' "$1" >&2; exit 0 ;; esac
    stack="$stack
$line"
done
printf '%s\\n' "$stack" >&2
"""


def watch(url: str) -> None:
    """Watch this process to its end if it uses an embedded store; called once, before the store is opened."""
    engine, _, path = url.partition(":")
    if engine != "lmdb" or not Path(path).is_dir() or not Path(_SHELL).exists() or faulthandler.is_enabled():
        return
    line = (
        f"A fatal error ended this command: the file of the store {url} may be damaged. "
        "pqadmin doctor reads it whole and says so."
    )
    reader, writer = os.pipe()
    try:
        os.posix_spawn(
            _SHELL,
            [_SHELL, "-c", _SCRIPT, "pqadmin", line, str(Path(path).absolute() / "suspect"), _ENGINE],
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reader, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except OSError:
        os.close(writer)
        return
    finally:
        os.close(reader)
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    leave = ctypes.cast(libc["_exit"], ctypes.c_void_p)
    for number in SIGNALS:
        libc.signal(number, leave)  # once faulthandler has written: the exit code is the signal's number
    faulthandler.enable(file=writer, all_threads=False)
