"""The base of every command that works on a store: opening it, and telling a person what went wrong.

No command shows a traceback for what a person can cause: a refused act, a missing file, a full disk, a closed pipe.
"""

from __future__ import annotations

import contextlib
import io
import os
import pwd
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.core.management.base import CommandError, CommandParser, OutputWrapper

from pqadmin import crash_watch
from pqadmin.commands.base import OwnCommand
from pqadmin.commands.shapes import Shape, error_shape
from pqadmin.conf.log import log_json
from pqadmin.files.formats import BadFormat
from pqadmin.files.plain_text import json_text
from queues import Acts, Store, open_store
from queues.errors import QueueError, StoreDamaged, StoreError, StoreUnavailable
from queues.tools.verify import verify_store

#: The ends of a queue; FIFO queues call them head and tail.
ENDS = ("min", "max", "head", "tail")
#: `pop` and `lease` took nothing, as nothing was ready.
EXIT_EMPTY = 4
#: What a shell reports for a program that was stopped by SIGINT or by a closed pipe.
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


class Arguments(CommandParser):
    """Options stand anywhere: Python 3.11's parser takes an optional argument for absent once it has met an option."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Namespace:  # type: ignore[override]
        """Parse options first and what is left after them."""
        parsed: Namespace = self.parse_intermixed_args(args, namespace)
        return parsed


class StoreCommand(OwnCommand):
    """A command on a store: `--store`, `--json`, and errors as one clear line (or one JSON object)."""

    requires_system_checks: list[str] = []
    #: Whether the command works on one store, the site's unless another is named.
    has_store = True
    #: Whether the command prints JSON on demand.
    has_json = True
    #: The store that the command works on, once it is known.
    _url = ""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Make the parser: Django's, which names its class itself, in ours."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = Arguments
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments that all of these commands share, after their own."""
        self.add_own_arguments(parser)
        if self.has_store:
            parser.add_argument(
                "--store", metavar="URL", help="the store, lmdb:PATH (default: the site's, from PQADMIN_STORE)"
            )
        if self.has_json:
            parser.add_argument("--json", action="store_true", help="print JSON; errors as JSON on stderr")

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the command's own arguments."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command on the store at its URL."""
        url = self._url = self.store_url(options)
        self.watch(url)
        if not self.may_make_store(options):
            refuse_missing(url)
        self.run_at(url, options)

    def run_at(self, url: str, options: dict[str, Any]) -> None:
        """Open the store and do the command's work in it; commands that need it closed do theirs here."""
        with open_store(url) as store:
            self.run(store, options)

    def watch(self, url: str) -> None:
        """Have a fatal error in the store's engine end this process with a line, if a shell has started it."""
        if getattr(self, "_called_from_command_line", False):
            crash_watch.watch(url)

    def may_make_store(self, options: dict[str, Any]) -> bool:
        """Say whether a store that is not there is made; to most commands a missing one is a mistyped one."""
        return False

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Do the command's work."""
        raise NotImplementedError

    def store_url(self, options: dict[str, Any]) -> str:
        """Return the store's URL: the option, else the site's."""
        return str(options["store"] or settings.PQADMIN_STORE)

    def acts(self, store: Store, *, keep: timedelta | None = None) -> Acts:
        """Return the audited acts of the operating system's user; `keep` is what `add_keep` has read."""
        return store.acts(os_user(), via="cli", keep=keep)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run; turn what a person can cause into `CommandError`, and that into a line when run from a shell."""
        failure: CommandError
        cause: BaseException
        if getattr(self, "_called_from_command_line", False) and options.get("json"):
            log_json()
        try:
            answer = super().execute(*args, **options)
            self.stdout.flush()  # here, so that a closed pipe is met while it can be handled
            return answer
        except (QueueError, StoreError, BadFormat) as error:
            failure, cause = CommandError(str(error)), error
        except CommandError as error:
            failure, cause = error, error.__cause__ or error
        except BrokenPipeError:
            _drop_stdout()
            failure = cause = CommandError("", returncode=EXIT_PIPE_CLOSED)
        except OSError as error:
            failure, cause = CommandError(_os_message(error)), error
        except KeyboardInterrupt as error:
            failure, cause = CommandError("Interrupted.", returncode=EXIT_INTERRUPTED), error
        except Exception:  # whatever it is, on a damaged store it comes of the damage
            damage = _damage(self._url)
            if damage is None:
                raise
            failure, cause = CommandError(str(damage)), damage
        if not getattr(self, "_called_from_command_line", False) or options.get("traceback"):
            raise failure from cause
        self._tell(failure, cause, as_json=bool(options.get("json")))
        sys.exit(failure.returncode)

    def progress_stream(self) -> TextIO | OutputWrapper:
        """Return where progress goes: the terminal itself, as Django's wrapper breaks lines; else the wrapper."""
        return sys.stderr if self.stderr.isatty() else self.stderr

    def print_line(self, text: str) -> None:
        """Print a line as it is."""
        self.stdout.write(text, lambda same: same)

    def print_json(self, shape: Shape) -> None:
        """Print one JSON document."""
        self.stdout.write(json_text(shape, indent=2 if self.stdout.isatty() else None))

    def _tell(self, failure: CommandError, cause: BaseException, *, as_json: bool) -> None:
        message = str(failure)
        if not message:
            return
        if as_json:
            message = json_text(error_shape(cause, message))
            self.stderr.write(message, lambda text: text)
        else:
            self.stderr.write(message)


def _damage(url: str) -> StoreDamaged | None:
    """Return what is wrong with the file of a store; None: nothing, or it has none."""
    try:
        verify_store(url)
    except StoreDamaged as damage:
        return damage
    except StoreError:
        return None
    return None


def os_user() -> str:
    """Return the name of the user who runs this process, or its number when it has no name.

    The environment is not asked: whoever runs a command sets that as they like.
    """
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def refuse_missing(url: str) -> None:
    """Raise `StoreUnavailable` when there is no embedded store at the URL."""
    engine, _, path = url.partition(":")
    if engine == "lmdb" and path and not Path(path).is_file() and not (Path(path) / "data.mdb").exists():
        raise StoreUnavailable("There is no store in {path}; create_queue makes one.", path=str(path))


def whole_number(text: str) -> int:
    """Read a number of at least 1 from the command line."""
    with contextlib.suppress(ValueError):
        if (number := int(text)) >= 1:
            return number
    raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")


def exit_code(text: str) -> int:
    """Read an exit code from the command line."""
    with contextlib.suppress(ValueError):
        if 0 <= (code := int(text)) <= 255:
            return code
    raise ArgumentTypeError(f"{text!r} is not an exit code from 0 to 255")


def add_exit_empty(parser: CommandParser) -> None:
    """Declare --exit-empty."""
    parser.add_argument(
        "--exit-empty",
        type=exit_code,
        default=EXIT_EMPTY,
        metavar="CODE",
        help="the exit code when nothing was ready (default: %(default)s)",
    )


def end_empty(options: dict[str, Any]) -> None:
    """End the command as its options say when nothing was ready, which it has told already."""
    if options["exit_empty"]:
        raise CommandError("", returncode=options["exit_empty"])


def line_number(text: str) -> int:
    """Read a number of at least 0 from the command line."""
    with contextlib.suppress(ValueError):
        if (number := int(text)) >= 0:
            return number
    raise ArgumentTypeError(f"{text!r} is not a line number")


def stdin_bytes() -> io.BufferedReader:
    """Return standard input as bytes."""
    stream = getattr(sys.stdin, "buffer", None)
    if not isinstance(stream, io.BufferedReader):
        raise CommandError("Standard input is not readable.")
    return stream


def _os_message(error: OSError) -> str:
    what = f"{error.filename}: " if error.filename else ""
    return f"{what}{error.strerror or error}"


def _drop_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain either."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
