"""`pqadmin top`: a live board of the queues on a terminal."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Self

from django.core.management.base import CommandError
from rich.console import Console

from pqadmin.commands.arguments import Argument
from pqadmin.commands.board_reader import BoardReader
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console
from pqadmin.commands.terminal import Terminal
from pqadmin.commands.top_view import Ends, Seen, View
from queues import Store
from queues.admin import canonical_name
from queues.errors import QueueError, QueueNotFound, StoreError

#: Seconds after which the screen is drawn anew, as ages go on; between two tries of a store that is away; and that the
#: reading thread gets to end.
_TICK, _RETRY, _ENDING = 1.0, 1.0, 2.0
#: Items of each end of an open queue, and bytes of each that are read.
_ENDS, _PREVIEW = 20, 256


class Command(StoreCommand):
    """Show a live board of the queues on a terminal: verdicts, depths, rates and both ends; keys open and pause.

    The keys are on the screen; ? explains them. It works over ssh, from 80 columns and 24 lines on.
    """

    arguments = (Argument("--prefix", default="", help="only queues with a name that begins with this"),)
    has_json = False
    uses_models = True

    def run(self, store: Store, options: Options) -> None:
        """Show the board until a key, Ctrl-C or SIGTERM ends it."""
        output = console(self.stdout)
        if sys.stdin is None or not (sys.stdin.isatty() and self.stdout.isatty()) or output.is_dumb_terminal:
            raise CommandError("top needs a terminal; queues --watch follows the queues without one.")
        prefix = canonical_name(options["prefix"])
        view = View(url=store.url)
        reader = BoardReader(store, prefix)
        with (
            Interruption() as stop,
            suppress(Interrupted, EOFError),
            Terminal(sys.stdin, sys.stdout) as terminal,
            _Reading(store, reader, view, terminal.wake),
        ):
            self._show(store, view, terminal, stop, output)

    def _show(self, store: Store, view: View, terminal: Terminal, stop: Interruption, output: Console) -> None:
        while view.wish != "quit":
            width, height = _size()
            with output.capture() as capture:
                output.print(view.draw(width, height, time.monotonic()), end="", soft_wrap=True)
            lines = capture.get().split("\n")
            sys.stdout.write("\x1b[H" + "\x1b[K\r\n".join(lines) + "\x1b[K\x1b[J")
            sys.stdout.flush()
            for key in terminal.keys(_TICK):
                view.key(key, height)
                if view.wish == "suspend":
                    with terminal.aside():
                        os.kill(0, signal.SIGTSTP)
                elif view.wish in ("pause", "resume"):
                    with stop.held():
                        view.message = self._act(store, view)
                elif view.wish == "quit":
                    break

    def _act(self, store: Store, view: View) -> str:
        """Pause or resume the chosen queue; return what came of it."""
        row, acts = view.row(), self.actions(store)
        if row is None:
            return "This queue is gone."
        name = row.status.name
        try:
            if view.wish == "pause":
                acts.pause(name, reason=view.typed.strip(), expect_id=row.status.id)
                return f"Paused {name}."
            acts.resume(name, expect_id=row.status.id)
            return f"Resumed {name}."
        except (QueueError, StoreError) as error:
            return str(error)
        finally:
            view.typed = ""


def _size() -> tuple[int, int]:
    """Return the columns and lines of the terminal. One in a container may not know them yet."""
    width, height = os.get_terminal_size(sys.stdout.fileno())  # COLUMNS and LINES do not follow it
    return width or 80, height or 24


class _Reading:
    """Reads the store in a thread, so that keys are followed while it is slow or away."""

    def __init__(self, store: Store, reader: BoardReader, view: View, wake: Callable[[], None]) -> None:
        self._store = store
        self._reader = reader
        self._view = view
        self._wake = wake
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pqadmin-top", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._store.interrupt()
        self._thread.join(_ENDING)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                for rows, now in self._reader.changes():
                    if self._ended.is_set():
                        return
                    self._view.seen = Seen(rows=rows, now=now, read=time.monotonic(), ends=self._ends())
                    self._wake()
            except Exception as error:  # the screen says so, over what was read last
                told = str(error) if isinstance(error, (StoreError, QueueError)) else repr(error)
                self._view.seen = replace(self._view.seen, failure=told)
                self._wake()
                self._ended.wait(_RETRY)

    def _ends(self) -> Ends:
        """Read the items at both ends of the queue that is open."""
        row = self._view.row()
        if self._view.mode != "open" or row is None or row.status.unreadable:
            return Ends()
        try:
            queue = self._store.queue(row.status.name)
            first, last = (queue.items(end=end, limit=_ENDS, preview=_PREVIEW).items for end in ("min", "max"))
        except QueueNotFound:
            return Ends()
        return Ends(queue_id=queue.id, first=first, last=last)
