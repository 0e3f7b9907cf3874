"""Integrity check: a child process reads an embedded store whole, so that damage kills the child and not the caller.

LMDB trusts its pages: a damaged one may end the process that reads it by SIGBUS, SIGSEGV or SIGABRT. This file runs as
a script, too, and imports nothing of the package then.
"""

import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence

import lmdb

log = logging.getLogger("queues.kv")

#: How the script ends when it has found damage, and when it could not look.
_DAMAGED, _NOT_READ = 3, 4
#: What ends a process that reads damaged pages; any other signal was sent to it.
_FATAL = (signal.SIGBUS, signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)
_MAP_BYTES, _MAX_READERS = 256 << 30, 1_024


def find_damage(folder: str, *, private: bool = False) -> str | None:
    """Read all of a store in a child process and return what is wrong with it; empty: nothing.

    None: it could not be read, and the log says why. The store may be in use, unless it is `private`: then the pages
    that LMDB would write next are looked at as well.
    """
    if not sys.executable or getattr(sys, "frozen", False):  # of a frozen program it is the program itself
        _not_read(folder, "inside of another program there is no interpreter to start")
        return None
    try:
        done = subprocess.run(
            [sys.executable, "-P", __file__, folder, "private" if private else "shared"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        _not_read(folder, str(error))
        return None
    if -done.returncode in _FATAL:
        return f"reading it ends a process by {signal.Signals(-done.returncode).name}"
    if done.returncode == _DAMAGED:
        return done.stdout.decode(errors="replace").strip()
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        _not_read(folder, said[-1] if said else f"the process that reads it ended ({done.returncode})")
        return None
    return ""


def _not_read(folder: str, why: str) -> None:
    """Say in the log that a store was not looked at."""
    log.warning("The store %s was not read whole, so damage of it is not found: %s", folder, why)


def _read_all(folder: str, *, private: bool) -> str:
    """Walk over all keys and values, and return what is wrong; empty: nothing."""
    env = lmdb.open(
        folder,
        readonly=not private,
        create=False,
        lock=not private and os.access(folder, os.W_OK),
        map_size=_MAP_BYTES,
        max_readers=_MAX_READERS,
        readahead=True,
        mode=0o600,
    )
    with env:
        with env.begin() as txn:
            told = txn.stat()["entries"]
            number, before = 0, b""
            for key, _ in txn.cursor():
                if key <= before:
                    return f"its keys are out of order after {number} of {told} keys"
                before = key
                number += 1
                if number > told:
                    break
        if number != told:
            return f"it holds {'more than ' if number > told else ''}{min(number, told)} keys and should hold {told}"
        if private:
            with env.begin(write=True) as txn:
                for n in range(64):
                    txn.put(b"\xff\xffverify%d" % n, bytes(8_000))
                txn.abort()
    return ""


def _main(arguments: Sequence[str]) -> int:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder, how = arguments
    try:
        damage = _read_all(folder, private=how == "private")
    except (lmdb.MemoryError, lmdb.LockError, lmdb.ReadersFullError, lmdb.DiskError, lmdb.ReadonlyError) as error:
        return _not_read_here(error)
    except lmdb.Error as error:
        code = getattr(error, "code", 0)
        if code > 0:  # of the operating system: no right to read it, say
            return _not_read_here(error)
        damage = str(getattr(error, "reason", "") or error)
    sys.stdout.write(damage)
    return _DAMAGED if damage else 0


def _not_read_here(error: lmdb.Error) -> int:
    sys.stderr.write(f"{error}\n")
    return _NOT_READ


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
