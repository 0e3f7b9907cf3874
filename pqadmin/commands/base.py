"""The base of all commands of pqadmin."""

import contextlib
import inspect
import os
import signal
import sys
from argparse import SUPPRESS, Action, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from traceback import walk_tb
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pqadmin import __version__
from pqadmin.commands import stop_signals
from pqadmin.commands.error_line import asks_json, json_error
from pqadmin.commands.exit_codes import Exit
from pqadmin.display import format as write

_CANNOT_WRITE = "Standard output cannot be written: {}."
#: Why a command ends that cannot write to standard output.
UNWRITTEN = f"{_CANNOT_WRITE} What the command has done stays done."


def program(path: str) -> str:
    """Return how a user started pqadmin, by the path of its script."""
    name = Path(path).name
    return "python -m pqadmin" if name == "__main__.py" else name


class Arguments(CommandParser):
    """A parser that takes options anywhere, also before an optional argument; its errors are one line."""

    called_from_command_line: bool
    _as_json = False

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Namespace:  # type: ignore[override]  # Django's names, without its overloads
        """Parse options first and what is left after them."""
        self._as_json = asks_json(sys.argv if args is None else args)
        parsed: Namespace = self.parse_intermixed_args(args, namespace)
        return parsed

    def error(self, message: str) -> NoReturn:
        """End the command with one line for a shell; raise `CommandError` for a caller."""
        if not self.called_from_command_line:
            super().error(message)
        told = write.one_line(message).removesuffix(".")
        self._end(Exit.USAGE, "UsageError", f"{self.prog}: {told}; see {self.prog} --help")

    def refuse(self, message: str) -> NoReturn:
        """End the command as refused, as `error` does."""
        if not self.called_from_command_line:
            raise CommandError(message)
        self._end(Exit.FAILED, "CommandError", message)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or a version; argparse itself leaves out what cannot be written."""
        if file is sys.stdout:
            print_or_end(message)
        else:
            super()._print_message(message, file)

    def _end(self, code: Exit, name: str, told: str) -> NoReturn:
        self.exit(code, (json_error(name, told) if self._as_json else told) + "\n")


class _NoServer(Action):
    """An option of commands on stores, which another command refuses by its reason."""

    def __call__(self, parser: Any, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        """Refuse the command."""
        parser.refuse(self.metavar)


class OwnCommand(BaseCommand):
    """A command with its docstring as help, pqadmin's `--version`, and usage errors of one line."""

    #: Why the command takes no `--server`; empty: it does.
    takes_no_server = "This command is about the site of this machine: run it there, without --server."

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take the help text from the docstring."""
        super().__init_subclass__(**kwargs)
        cls.help = " ".join(inspect.cleandoc(cls.__doc__ or "").split())

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Make Django's parser, of our class."""
        parser = super().create_parser(program(prog_name), subcommand, **kwargs)
        parser.__class__ = Arguments
        if self.takes_no_server:
            for name in ("--server", "--token-file"):
                parser.add_argument(name, action=_NoServer, metavar=self.takes_no_server, help=SUPPRESS)
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; end with one line where it is refused or stopped, or the system refuses something."""
        from_shell = getattr(self, "_called_from_command_line", False)
        if from_shell and signal.getsignal(signal.SIGINT) == signal.default_int_handler:
            signal.signal(signal.SIGINT, stop_signals.heed)
        try:
            answer: str | None = super().execute(*args, **options)
            self.stdout.flush()  # here, where a closed pipe can be handled
        except CommandError as error:
            self.fail(error, error.__cause__ or error, options)
        except BrokenPipeError as error:
            drop_stdout()
            self.fail(CommandError("", returncode=Exit.PIPE_CLOSED), error, options)
        except OSError as error:
            told = _os_message(error)
            if self.wrote_when(error):
                drop_stdout()
                told = UNWRITTEN.format(told)
            self.fail(CommandError(told), error, options)
        except KeyboardInterrupt as error:
            if self.wrote_when(error):
                drop_stdout()
            self.fail(CommandError("Interrupted.", returncode=Exit.INTERRUPTED), error, options)
        return answer

    def wrote_when(self, error: BaseException) -> bool:
        """Return whether an error came of writing to standard output, or came while it was written."""
        return any(frame.f_locals.get("self") is self.stdout for frame, _ in walk_tb(error.__traceback__))

    def fail(self, failure: CommandError, cause: BaseException, options: dict[str, Any]) -> NoReturn:
        """End the command with one line for a shell; raise for a caller."""
        if not getattr(self, "_called_from_command_line", False) or options.get("traceback"):
            raise failure from cause
        if failure.returncode == Exit.INTERRUPTED:
            stop_signals.end_at_next()
        if message := write.one_line(str(failure)):
            self.tell_failure(message, failure, cause)
        sys.exit(failure.returncode)

    def tell_failure(self, message: str, failure: CommandError, cause: BaseException) -> None:
        """Write why the command ends."""
        self.stderr.write(message)

    def get_version(self) -> str:
        """Return what `--version` prints."""
        return __version__


def _os_message(error: OSError) -> str:
    what = f"{error.filename}: " if error.filename else ""
    return f"{what}{error.strerror or error}"


@contextlib.contextmanager
def writing_stdout(unwritten: str = "") -> Iterator[None]:
    """Write what is printed in the block at once; raise `CommandError` if that fails, with `unwritten` behind why."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        drop_stdout()
        code = Exit.PIPE_CLOSED if isinstance(error, BrokenPipeError) else Exit.FAILED
        told = f"{_CANNOT_WRITE.format(error.strerror or error)} {unwritten}"
        raise CommandError(told.rstrip(), returncode=code) from None


def print_or_end(text: str) -> None:
    """Write to standard output; end the process with one line where that cannot be written."""
    try:
        with writing_stdout():
            sys.stdout.write(text)
    except CommandError as error:
        if error.returncode != Exit.PIPE_CLOSED:
            sys.stderr.write(f"{error}\n")
        raise SystemExit(error.returncode) from None


def drop_stdout() -> None:
    """Point standard output at the null device, so that the last flush succeeds."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stdin_line(what: str) -> str:
    """Return the first line of standard input; raise `CommandError` where that is closed."""
    if sys.stdin is None:
        raise CommandError(f"Standard input is closed: {what} is read from it.")
    return sys.stdin.readline().rstrip("\r\n")
