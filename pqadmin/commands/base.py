"""The base of all commands of pqadmin."""

import inspect
import sys
from argparse import SUPPRESS, Action, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pqadmin import __version__
from pqadmin.commands.exit_codes import Exit
from pqadmin.display import format as write
from pqadmin.files.plain_text import json_text


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
        self._as_json = not {"--json", "--jsonl"}.isdisjoint(sys.argv if args is None else args)
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

    def _end(self, code: Exit, name: str, told: str) -> NoReturn:
        shape = {"error": {"code": name, "message": told, "suggestions": []}}
        self.exit(code, (json_text(shape) if self._as_json else told) + "\n")


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
        """Run the command; end with one line where it is refused."""
        try:
            answer: str | None = super().execute(*args, **options)
        except CommandError as error:
            self.fail(error, error.__cause__ or error, options)
        return answer

    def fail(self, failure: CommandError, cause: BaseException, options: dict[str, Any]) -> NoReturn:
        """End the command with one line for a shell; raise for a caller."""
        if not getattr(self, "_called_from_command_line", False) or options.get("traceback"):
            raise failure from cause
        if message := write.one_line(str(failure)):
            self.tell_failure(message, failure, cause)
        sys.exit(failure.returncode)

    def tell_failure(self, message: str, failure: CommandError, cause: BaseException) -> None:
        """Write why the command ends."""
        self.stderr.write(message)

    def get_version(self) -> str:
        """Return what `--version` prints."""
        return __version__
