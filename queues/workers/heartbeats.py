"""Heartbeats: the extension of a pool's leases while handlers run."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from queues.store import Store
from queues.workers.lease_extender import HeldLease, LeaseExtender
from queues.workers.settling import Task

log = logging.getLogger("queues.workers")

#: Seconds for which nothing is leased at most until the process is ready, and between two looks whether to give up.
_START_PATIENCE, _LOOK = 10.0, 0.02
#: Seconds until the process is started again: at first, and at most.
_FIRST_REST, _LONGEST_REST = 0.1, 10.0
#: How often it is started, one time after the other, without getting ready.
_STARTS = 3
#: Seconds that the process gets to end by itself.
_END_PATIENCE = 5.0


class Heartbeats:
    """Extends the leases of tasks until they are dropped. `run` is the body of its thread.

    A process of its own extends them: a handler may hold the interpreter, for whatever time, and then no other thread
    of this process runs. Where no other process can open the store, or none can be started, a thread extends them.
    """

    def __init__(self, store: Store) -> None:
        self._address = store.address
        self._lock = threading.Lock()
        self._tasks: dict[str, Task] = {}
        self._extender = LeaseExtender(lost=self._lost) if store.address is None else None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        self._stopped = threading.Event()

    def await_ready(self, given_up: threading.Event) -> None:
        """Wait, some seconds at most, until leases can be extended."""
        until = time.monotonic() + _START_PATIENCE
        while self._extender is None and not given_up.is_set() and time.monotonic() < until:
            if self._ready.wait(_LOOK):
                return

    def keep(self, task: Task) -> None:
        """Extend a task's lease from now on; call it as soon as it is leased."""
        with self._lock:
            self._tasks[task.lease.token] = task
            if self._extender is None:
                self._send(_keep(task, at_once=False))
            else:
                self._extender.keep(_held(task))

    def drop(self, task: Task) -> None:
        """Extend a task's lease no longer."""
        token = task.lease.token
        with self._lock:
            if self._tasks.pop(token, None) is None:
                return
            if self._extender is None:
                self._send({"drop": token})
            else:
                self._extender.drop(token)

    def run(self) -> None:
        """Extend leases until `stop`."""
        if self._extender is None:
            why = self._run_process()
            if why is None:
                return
            log.warning("Leases are extended by a thread, as no process can be started: %s", why)
            with self._lock:
                if self._stopped.is_set():
                    return
                self._extender = LeaseExtender(lost=self._lost)
                for task in self._tasks.values():
                    self._extender.keep(_held(task), at_once=True)
        self._extender.run()

    def stop(self) -> None:
        """Make the process, and `run`, end."""
        with self._lock:
            self._stopped.set()
            if self._extender is not None:
                self._extender.stop()
            process = self._process
            if process is None:
                return
            _close_input(process)
        killing = threading.Timer(_END_PATIENCE, process.kill)
        killing.daemon = True
        killing.start()

    def _run_process(self) -> str | None:
        """Run the process, again and again, until `stop`; else return why there can be none."""
        if not sys.executable or getattr(sys, "frozen", False):  # of a frozen program it is the program itself
            return "this program has no Python interpreter of its own"
        # Signals that a terminal or a service manager sends to all processes are for the pool: the child inherits this.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        rest, unready = _FIRST_REST, 0
        while True:
            try:
                process = self._start()
            except OSError as error:
                return str(error)
            if process is None:
                return None
            with process:
                assert process.stdout is not None
                for line in process.stdout:
                    self._receive(line)
                unready = 0 if self._ready.is_set() else unready + 1
                self._ready.clear()
                with self._lock:
                    _close_input(process)
            if self._stopped.is_set():
                return None
            if unready == _STARTS:
                return f"it ended {unready} times before it was ready"
            log.warning("The heartbeat process ended (%d): it is started again", process.returncode)
            self._stopped.wait(rest)
            rest = min(_LONGEST_REST, rest * 2) if unready else _FIRST_REST

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start the process and send it all leases; None after `stop`."""
        with self._lock:
            if self._stopped.is_set():
                return None
            assert self._address is not None
            self._process = process = subprocess.Popen(
                [sys.executable, "-P", "-m", "queues.workers.heartbeat_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
            )
            lines = [self._address.encode(), str(os.getpid())]
            lines += [json.dumps(_keep(task, at_once=True)) for task in self._tasks.values()]
            assert process.stdin is not None
            try:
                process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            except BrokenPipeError:
                return process  # it has died: `_run_process` sees that
            os.set_blocking(process.stdin.fileno(), False)
            return process

    def _send(self, message: dict[str, Any]) -> None:
        """Write to the process, if it runs; when started again it gets all leases."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.closed:
            return
        try:
            written = os.write(process.stdin.fileno(), json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            return
        except BlockingIOError:
            written = 0
        if not written:  # it no longer reads
            process.kill()

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):  # any module of the interpreter may print
            log.warning("The heartbeat process wrote: %s", line.decode(errors="backslashreplace").rstrip("\n"))
        elif "ready" in message:
            self._ready.set()
        elif "lost" in message:
            self._lost(message["lost"])
        elif "log" in message:
            log.log(message["level"], "%s", message["log"])

    def _lost(self, token: str) -> None:
        with self._lock:
            task = self._tasks.pop(token, None)
        if task is not None and not task.settling:
            log.warning("%s: the lease of item %s is lost while it is worked on", task.queue.name, task.lease.item.id)


def _held(task: Task) -> HeldLease:
    return HeldLease(
        queue=lambda: task.queue, name=task.queue.name, token=task.lease.token, seconds=task.handler.seconds
    )


def _keep(task: Task, *, at_once: bool) -> dict[str, Any]:
    return {
        "keep": task.lease.token,
        "queue": task.queue.id,
        "name": task.queue.name,
        "seconds": task.handler.seconds,
        "at_once": at_once,
    }


def _close_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
