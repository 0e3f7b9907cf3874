"""`--exec`: a program handles items, each leased while it runs; its exit code decides.

The program runs in a process group of its own, so that a stop of the command reaches it once and in order: the signal
is passed on, and after the grace time, or a second signal, the group is killed. A small shell waits beside the command,
and does the same when the command itself was killed. It knows the group before the program joins it: a second shell is
the first member, and ends with the command. A program that makes a group of its own, as `timeout` does, is stopped with
that one, too.
"""

import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from django.core.management.base import CommandError

from pqadmin.commands.arguments import Argument, number, span
from pqadmin.commands.exit_codes import Exit
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.take_options import end_of, finish, waited
from pqadmin.display.format import visible
from pqadmin.files.shapes import Shape, item_shape
from queues import Lease, Queue
from queues.admin import LeaseKeeper
from queues.errors import QueuePaused, StaleLease

#: Lines of standard error that are kept with a released item, and bytes of one.
_LINES, _LINE = 50, 1_000
#: Seconds for what the program wrote to standard error, once it has ended: a process that it left may hold it open.
_LAST_WORDS = 1.0
_DAY = 86_400
#: Reads the process groups of each program, one before it starts, and an empty line when it has ended; told the grace
#: time.
_GUARD = """
signal() { alive=1; for group in $running; do kill -s "$1" -- "-$group" && alive=0; done; return "$alive"; }
while IFS= read -r groups; do running=$groups; done
[ -n "$running" ] || exit 0
signal TERM
left=$1
while [ "$left" -gt 0 ] && signal 0; do sleep 1; left=$((left - 1)); done
signal KILL
"""

EXEC = Argument(
    "--exec",
    metavar="COMMAND",
    help="run this for each item, its value on standard input; exit code 0 acknowledges it, any other releases it",
)
DELAY = Argument("--delay", type=span, metavar="SPAN", help="with --exec: a released item comes back after this span")
GRACE = Argument(
    "--grace",
    type=number(float, 0, _DAY, f"a number of seconds from 0 to {_DAY}"),
    default=30.0,
    metavar="SECONDS",
    help="with --exec: how long the program may go on after a stop (default: %(default)s)",
)


class Execution:
    """Handles items of a queue by a program, one after the other."""

    def __init__(self, command: StoreCommand, queue: Queue, options: Options, *, store_url: str) -> None:
        self._command = command
        command.listed = "items"
        self._queue = queue
        self._options = options
        self._seconds = options.get("span") or 60.0
        self._environment = {**os.environ, "PQADMIN_STORE": store_url, "PQ_QUEUE": queue.name}
        if token := command.token(store_url, options):
            self._environment["PQADMIN_TOKEN"] = token
        self._stop = Interruption(self._pass_on)
        #: The process group of the program that runs, and the one that the program may make.
        self._groups: set[int] = set()
        self._passed_on = False
        self._guard: IO[bytes] | None = None
        self._handled = 0
        #: Of the one document that --json prints.
        self._shapes: list[Shape] = []
        self._arguments = _arguments(options["exec"])

    def run(self) -> None:
        """Handle at most the items that are asked for; end at the first that fails, or when nothing is ready."""
        end = end_of(self._queue, self._options)
        try:
            with self._stop, _guard(math.ceil(self._options["grace"])) as self._guard:
                while self._handled < self._options["n"] and self._one(end):
                    pass
        except Interrupted:
            raise CommandError("Interrupted.", returncode=Exit.INTERRUPTED) from None
        finally:
            if not self._command.lines and (self._handled or sys.exc_info()[0] is None):
                self._command.answer({"queue": self._queue.name, "items": self._shapes})
        finish(self._command, self._queue, self._options, empty=not self._handled)

    def _one(self, end: str) -> bool:
        """Handle an item; return False when there is none."""
        wait = self._options["wait"]
        deadline = time.monotonic() + (wait or 0.0)
        while True:
            if wait is not None:
                self._queue.wait(max(0.0, deadline - time.monotonic()))  # a stop may end it: nothing is taken yet
            late = wait is None or time.monotonic() >= deadline
            with self._stop.held():
                lease = self._lease(end, late=late)
                if lease is not None:
                    self._handle(lease)
                    return True
            if late:
                return False

    def _lease(self, end: str, *, late: bool) -> Lease | None:
        wait, worker = self._options["wait"], self._options.get("worker")
        try:
            return self._queue.lease(seconds=self._seconds, end=end, worker=worker)
        except QueuePaused:
            if not late:
                return None  # paused meanwhile: wait for the rest of the time
            if wait is None:
                raise
            with waited(wait):
                raise

    def _handle(self, lease: Lease) -> None:
        """Run the program for a leased item, then acknowledge or release the item."""
        item, delay = lease.item, self._options["delay"]
        words = deque[str](maxlen=_LINES)
        with self._kept(lease) as lost:
            code, failure = self._run(lease, words)
        if lost.is_set():
            raise StaleLease(f"The lease of {item.id} is over while its command ran: another worker may hold the item.")
        shape: Shape = {**item_shape(item), "exit_code": code, "acknowledged": code == 0, "reason": None}
        if code == 0:
            self._queue.ack(lease)
            self._tell(shape)
            return
        stopped = self._stop.requested
        reason = "The command was stopped." if stopped else ": ".join(filter(None, [failure, *[*words][-1:]]))
        now = self._queue.release(
            lease,
            delay=None if stopped else delay,
            reason=reason,
            traceback="" if stopped else "\n".join(words),
            count_attempt=not stopped,
        )
        self._tell({**shape, "state": now.state, "attempts": now.attempts, "reason": reason})
        if not stopped:
            told = f"{self._queue.name}: {visible(failure)}; the item {item.id} is {now.state}."
            raise CommandError(told, returncode=Exit.EXEC_FAILED)

    def _tell(self, shape: Shape) -> None:
        self._handled += 1
        if self._command.lines:
            self._command.answer({"queue": self._queue.name, "items": [shape]})
        elif self._options["json"]:
            self._shapes.append(shape)

    # The program

    def _run(self, lease: Lease, words: deque[str]) -> tuple[int, str]:
        """Run the program to its end; return its exit code, and how it failed."""
        program, item = self._arguments[0], lease.item
        variables = {
            "PQ_ID": item.id,
            "PQ_PRIORITY": "" if item.priority is None else str(item.priority).replace("\0", ""),
            "PQ_ATTEMPT": str(item.attempts),
            "PQ_LEASE": lease.token,
        }
        with tempfile.TemporaryFile() as value:  # a pipe would be full of a value that is not read
            value.write(item.raw)
            value.seek(0)
            try:
                with self._guarded_group() as group:
                    process = subprocess.Popen(
                        self._arguments,
                        stdin=value,
                        stdout=sys.stderr.fileno() if self._options["json"] else None,
                        stderr=subprocess.PIPE,
                        env=self._environment | variables,
                        process_group=group,
                    )
                    self._groups = {group or process.pid, process.pid}
                    self._tell_guard(f"{group} {process.pid}")
                    if self._stop.requested and not self._passed_on:  # it came while the program was started
                        self._pass_on(signal.SIGTERM)
                    reader = threading.Thread(target=_pass_words, args=(process.stderr, words), daemon=True)
                    reader.start()
                    code = process.wait()
                    self._groups = set()
            except OSError as error:
                return 127, f"{program} cannot be run: {error.strerror}"
            reader.join(_LAST_WORDS)
        if code < 0:
            return 128 - code, f"{program} was killed by {_signal_name(-code)}"
        return code, f"{program} ended with exit code {code}" if code else ""

    @contextmanager
    def _guarded_group(self) -> Iterator[int]:
        """Yield a process group that the guard knows, before a program joins it; its first member ends with us.

        Without a guard it is 0, and the program makes one.
        """
        if self._guard is None:
            yield 0
            return
        first = subprocess.Popen(
            ["/bin/sh", "-c", "read -r end"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        try:
            self._tell_guard(str(first.pid))
            yield first.pid
        finally:
            self._tell_guard("")
            first.communicate()

    def _tell_guard(self, group: str) -> None:
        with suppress(BrokenPipeError):
            if self._guard is not None:
                self._guard.write(f"{group}\n".encode())
                self._guard.flush()

    def _pass_on(self, number: int) -> None:
        """Pass a stop signal on to the program; kill it at the second, or after the grace time."""
        if not self._groups:
            return
        if self._passed_on:
            self._kill()
            return
        self._passed_on = True
        self._signal(number)
        timer = threading.Timer(self._options["grace"], self._kill)
        timer.daemon = True
        timer.start()

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        for group in self._groups:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)

    @contextmanager
    def _kept(self, lease: Lease) -> Iterator[threading.Event]:
        """Extend a lease in a thread while the block runs; where it is lost, set the event and kill the program."""
        lost = threading.Event()

        def lose() -> None:
            lost.set()
            self._kill()

        keeper = LeaseKeeper(lambda: self._queue.extend(lease, seconds=self._seconds), self._seconds, lost=lose)
        threading.Thread(target=keeper.run, name="pqadmin-exec-lease", daemon=True).start()
        try:
            yield lost
        finally:
            keeper.stop()


@contextmanager
def _guard(grace: int) -> Iterator[IO[bytes] | None]:
    """Yield what the guard reads: it outlives this process, and is in no group that is stopped with it."""
    try:
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(grace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
    except OSError:
        yield None
        return
    try:
        yield guard.stdin
    finally:
        guard.communicate()


def _arguments(line: str) -> list[str]:
    """Return the words of a command line; raise `CommandError`, before anything is leased, if it cannot be run."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise CommandError(f"--exec: {error}") from None
    if not words or shutil.which(words[0]) is None:
        what = visible(words[0]) if words else "nothing"
        raise CommandError(f"--exec: {what} cannot be run: there is no such program, or it is not executable.")
    return words


def _pass_words(stream: IO[bytes], words: deque[str]) -> None:
    """Write what a program writes to standard error at once, and keep the last lines."""
    for line in iter(lambda: stream.readline(65_536), b""):
        with suppress(OSError, ValueError):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
        if text := line[:_LINE].decode(errors="replace").rstrip():
            words.append(text)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
