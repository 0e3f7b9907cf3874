"""What `pop` and `lease` share: the end they take from, waiting, and an empty queue."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from pqadmin.commands.base import UNWRITTEN, drop_stdout
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.display.format import age
from queues import Queue
from queues.errors import QueuePaused


def end_of(queue: Queue, options: Options) -> str:
    """Return the end to take from; a FIFO queue has one only."""
    end = {"head": "min", "tail": "max"}.get(options["end"], str(options["end"]))
    if queue.kind == "fifo" and end == "max":
        raise CommandError(f"{queue.name} is a FIFO queue: items leave it at the head only.")
    return end


def check_output(options: Options) -> None:
    """Refuse options of which one only can be given, before anything is taken."""
    if options["raw"] and (options["json"] or options["exec"] is not None or options["n"] != 1):
        raise CommandError("--raw writes one value and nothing else: leave out -n, --json, --jsonl and --exec.")


def write_raw(parts: Iterable[bytes]) -> None:
    """Write the parts of a value, or of a file, to standard output, byte for byte."""
    try:
        sys.stdout.buffer.writelines(parts)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        drop_stdout()
        raise
    except OSError as error:
        raise CommandError(UNWRITTEN.format(error.strerror)) from error


@contextmanager
def waited(wait: float) -> Iterator[None]:
    """Take once more after waiting in vain: a paused queue is reported as paused, not as empty."""
    try:
        yield
    except QueuePaused as paused:
        raise CommandError(f"Nothing came within {age(wait)}: {paused}") from paused


def finish(command: StoreCommand, queue: Queue, options: Options, *, empty: bool) -> None:
    """End the command; an empty queue gives a line and an exit code of its own."""
    if not empty:
        return
    if not options["json"]:
        line = f"{queue.name} has nothing ready."
        if options["raw"] or options["exec"] is not None:
            command.tell(line)  # what is on standard output is values
        else:
            command.stdout.write(line)
    if options["exit_empty"]:
        raise CommandError("", returncode=options["exit_empty"])
