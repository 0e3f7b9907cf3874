"""The pool's side of the heartbeat process: starts it, tells it what to keep, starts it again when it dies."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from queues.model.store_address import StoreAddress
from queues.workers.keeper import Held

log = logging.getLogger("queues.workers")

#: Seconds for which nothing is leased at most until the process is ready, and between two looks whether to give up.
_START_PATIENCE, _LOOK = 10.0, 0.02
#: Seconds until the process is started again: at first, and at most.
_FIRST_REST, _LONGEST_REST = 0.1, 10.0
#: How often it is started, one time after the other, without getting ready.
_STARTS = 3
#: Seconds that the process gets to end by itself.
_END_PATIENCE = 5.0


class NoProcess(Exception):
    """The heartbeat process cannot be started."""


class KeeperProcess:
    """A keeper in a process of its own. `run` is the body of the thread that looks after it.

    A handler that holds the interpreter, for whatever time, keeps no thread of this process from sleeping: so leases
    are extended elsewhere.
    """

    def __init__(self, address: StoreAddress, *, lost: Callable[[str], None]) -> None:
        self._address = address
        self._lost = lost
        self._lock = threading.Lock()
        self._held: dict[str, Held] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        self._stopped = threading.Event()

    def keep(self, held: Held) -> None:
        """Extend a lease from now on."""
        with self._lock:
            self._held[held.token] = held
            self._tell(_keep(held, at_once=False))

    def await_ready(self, given_up: threading.Event) -> None:
        """Wait until the process can extend leases, some seconds at most."""
        until = time.monotonic() + _START_PATIENCE
        while not self._ready.wait(_LOOK) and not given_up.is_set() and time.monotonic() < until:
            continue

    def drop(self, token: str) -> None:
        """Extend a lease no longer."""
        with self._lock:
            if self._held.pop(token, None) is not None:
                self._tell({"drop": token})

    def stop(self) -> None:
        """Let the process, and `run`, end."""
        with self._lock:
            self._stopped.set()
            process = self._process
            if process is None:
                return
            _close_input(process)
        killing = threading.Timer(_END_PATIENCE, process.kill)
        killing.daemon = True
        killing.start()

    def run(self) -> None:
        """Look after the process until told to stop; raise `NoProcess` when there can be none."""
        # What a terminal or a service manager sends to all processes is for the pool: the process inherits this.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        rest, unready = _FIRST_REST, 0
        while (process := self._start()) is not None:
            with process:
                assert process.stdout is not None
                for line in process.stdout:
                    self._hear(line)
                unready = 0 if self._ready.is_set() else unready + 1
                self._ready.clear()
                with self._lock:
                    _close_input(process)
            if self._stopped.is_set():
                return
            if unready == _STARTS:
                self._give_up(f"it ended {unready} times before it was ready")
            log.warning("The heartbeat process ended (%d): it is started again", process.returncode)
            self._stopped.wait(rest)
            rest = min(_LONGEST_REST, rest * 2) if unready else _FIRST_REST

    def _give_up(self, why: str) -> NoReturn:
        self._ready.set()  # nobody is to wait for it any more
        raise NoProcess(why)

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._stopped.is_set():
                return None
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "queues.workers.heartbeat_process"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    bufsize=0,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
                )
            except OSError as error:
                self._give_up(str(error))
            lines = [self._address.encode(), str(os.getpid())]
            lines += [json.dumps(_keep(held, at_once=True)) for held in self._held.values()]
            assert self._process.stdin is not None
            try:
                self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            except BrokenPipeError:
                return self._process  # it has died: `run` sees that
            os.set_blocking(self._process.stdin.fileno(), False)
            return self._process

    def _tell(self, what: dict[str, Any]) -> None:
        """Tell the process, which hears all that is kept when it is started again."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.closed:
            return
        try:
            written = os.write(process.stdin.fileno(), json.dumps(what).encode() + b"\n")
        except BrokenPipeError:
            return
        except BlockingIOError:
            written = 0
        if not written:  # it listens no longer
            process.kill()

    def _hear(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):  # any module of the interpreter may print
            log.warning("The heartbeat process wrote: %s", line.decode(errors="backslashreplace").rstrip("\n"))
        elif "ready" in said:
            self._ready.set()
        elif "lost" in said:
            with self._lock:
                lost = self._held.pop(said["lost"], None) is not None
            if lost:
                self._lost(said["lost"])
        elif "log" in said:
            log.log(said["level"], "%s", said["log"])


def _keep(held: Held, *, at_once: bool) -> dict[str, Any]:
    queue_id = held.queue().id
    return {"keep": held.token, "queue": queue_id, "name": held.name, "seconds": held.seconds, "at_once": at_once}


def _close_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
