"""The base of commands that work on a store: opening it, answers, and errors.

No command shows a traceback for what a user can cause: a refused action, a missing file, a full disk, a closed pipe.
"""

import codecs
import contextlib
import os
import pwd
import shlex
import signal
import sys
from argparse import SUPPRESS
from collections.abc import Iterator, Sequence
from datetime import timedelta
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.core.management.base import CommandError, CommandParser, OutputWrapper

from pqadmin import fatal_signals
from pqadmin.commands import saved_tokens
from pqadmin.commands.arguments import Argument, OneOf
from pqadmin.commands.base import OwnCommand, drop_stdout
from pqadmin.commands.error_line import json_error
from pqadmin.commands.exit_codes import Exit
from pqadmin.commands.stop_signals import Interrupted, Interruption, heed, stop_signals
from pqadmin.conf.log import log_json
from pqadmin.files.entries import BadFormat
from pqadmin.files.plain_text import json_text
from pqadmin.files.shapes import Shape
from queues import Actions, AnyQueue, Store, open_store
from queues.admin import check_address, verify_store
from queues.errors import ERRORS, LocalStoreOnly, QueueError, StoreDamaged, StoreError, StoreUnavailable

Options = dict[str, Any]
#: Why a command does not work through a server.
ON_THE_MACHINE = "This command works on a store itself: run it on the machine of the site."

#: The codes that an error has as JSON by the exit code, or else by its class; the rest are `CommandError`.
_CODES_OF_EXITS: dict[int, str] = {Exit.INTERRUPTED: "Interrupted", Exit.USAGE: "UsageError"}
_CODES = {*ERRORS, "BadFormat", "BadLines", "StoppedAtBadEntry", "OSError"}


class StoreCommand(OwnCommand):
    """A command on a store: `--store`, `--json`, and errors as one clear line or one JSON object."""

    requires_system_checks: list[str] = []
    #: The command's own arguments.
    arguments: Sequence[Argument | OneOf] = ()
    #: Whether the command works on one store: the site's, unless another is named.
    has_store = True
    #: Whether the command works through the server of a store too.
    on_servers = True
    takes_no_server = ""
    #: Whether the command imports the site's models when it runs.
    uses_models = False
    #: Whether the command prints JSON on demand.
    has_json = True
    #: The list in the command's document of which --jsonl prints one line each.
    listed = ""
    #: Whether a missing store is created; otherwise its path counts as mistyped.
    creates_store = False
    #: The options that name the store, as they were given.
    _store_options: tuple[str, ...] = ()
    #: The URL of the store, once it is known, and the kind of JSON that is asked for: document, lines or none.
    _url = ""
    _json = ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the command's own arguments, then the shared ones."""
        for argument in self.arguments:
            argument.add(parser)
        if self.has_store:
            kinds = (
                "lmdb:PATH, fdb:CLUSTER_FILE or https://HOST" if self.on_servers else "lmdb:PATH or fdb:CLUSTER_FILE"
            )
            site, secret = "the store of the site there, https://HOST", "the token for the site, in a file of mode 600"
            if not self.on_servers:  # they are refused by name, and not offered
                site = secret = SUPPRESS
            OneOf(
                Argument("--store", metavar="URL", help=f"the store, {kinds} (default: that of PQADMIN_STORE)"),
                Argument("--server", metavar="URL", help=site),
            ).add(parser)
            parser.add_argument("--token-file", metavar="FILE", help=secret)
        if self.has_json:
            OneOf(
                Argument("--json", action="store_const", const="document", help="print JSON; errors as JSON on stderr"),
                Argument("--jsonl", dest="json", action="store_const", const="lines", help="the same, a line for each"),
            ).add(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command on the store at its URL."""
        url = self._url = self.store_url(options)
        given = {f"--{name.replace('_', '-')}": options.get(name) for name in ("store", "server", "token_file")}
        self._store_options = tuple(word for name, value in given.items() if value for word in (name, str(value)))
        if saved_tokens.is_server(url):
            if not self.on_servers:
                raise LocalStoreOnly(ON_THE_MACHINE)
            self.run_at(url, options)
            return
        self.watch(url)
        if not (self.creates_store or options.get("create")):
            refuse_missing(url)
        self.run_at(url, options)

    def run_at(self, url: str, options: Options) -> None:
        """Open the store and run the command in it; commands that need a closed store override this."""
        with open_store(url, token=self.token(url, options)) as store:
            self.run(store, options)

    def run(self, store: Store, options: Options) -> None:
        """Run the command in an open store."""
        raise NotImplementedError

    def watch(self, url: str) -> None:
        """Report a fatal error of the store's engine by one line, if a shell started this."""
        if getattr(self, "_called_from_command_line", False):
            fatal_signals.watch(url)

    def store_url(self, options: Options) -> str:
        """Return the store's URL: the option, else the site's."""
        return self.named_store(options) or self.store_of_environment()

    def store_of_environment(self) -> str:
        """Return the URL of the environment's store."""
        return str(settings.PQADMIN_STORE)

    def named_store(self, options: Options) -> str:
        """Return the URL of the store that the options name; empty without one."""
        server = options.get("server")
        if server and not saved_tokens.is_server(server):
            raise CommandError(
                f"--server takes the address of a site, https://HOST, not {server!r}.", returncode=Exit.USAGE
            )
        return str(options.get("store") or server or "")

    def token(self, url: str, options: Options) -> str | None:
        """Return the token for the store of a site: that of the file, the environment's, or the one that is kept."""
        if not saved_tokens.is_server(url):
            return None
        check_address(url, with_token=True)
        if options.get("token_file"):
            return saved_tokens.read_token(Path(options["token_file"]))
        own = self.store_of_environment()
        token = saved_tokens.token_for(url, own=own, token=self.token_of_environment())
        if token is None:
            elsewhere = saved_tokens.is_elsewhere(url, own)
            ways = "--token-file" if elsewhere else "--token-file, PQADMIN_TOKEN"
            told = f" PQADMIN_TOKEN is for {own}." if elsewhere and self.token_of_environment() else ""
            raise CommandError(f"{url} needs a token: {ways}, or pqadmin login {url}{told and '.' + told}")
        return token

    def token_of_environment(self) -> str:
        """Return the token of the environment; empty without one."""
        return str(settings.PQADMIN_TOKEN)

    def actions(self, store: Store, *, keep: timedelta | None = None) -> Actions:
        """Return the audited actions of the operating system's user."""
        return store.actions(os_user(), via="cli", keep=keep)

    def create(self, store: Store, options: Options) -> AnyQueue:
        """Create the queue that the options describe."""
        settings = {name: options[name] for name in ("kind", "priority_type", "codec")}
        return self.actions(store).create_queue(options["queue"], **settings)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; turn errors that a user can cause into `CommandError`, or into a line for a shell."""
        self._json = options.get("json") or ""
        if getattr(self, "_called_from_command_line", False) and self._json:
            log_json()
        try:
            if getattr(self, "_called_from_command_line", False):
                for number in stop_signals() - {signal.SIGINT}:
                    signal.signal(number, heed)  # it ends as by Ctrl-C, its store closed
                for stream in (sys.stdout, sys.stderr):
                    _take_all_text(stream, as_json=bool(self._json))
            return super().execute(*args, **options)
        except CommandError:
            raise
        except (QueueError, StoreError, BadFormat) as error:
            self.fail(CommandError(str(error)), error, options)
        except Exception:  # on a damaged store, any error comes of the damage
            damage = _damage(self._url)
            if damage is None:
                raise
            self.fail(CommandError(str(damage)), damage, options)

    @contextlib.contextmanager
    def until_stopped(self) -> Iterator[Interruption]:
        """Let a stop signal end the block, as the way to end a command that stays; unread output is dropped."""
        try:
            with Interruption() as stop:
                yield stop
        except Interrupted as stopped:
            if self.wrote_when(stopped):
                drop_stdout()

    def tell_failure(self, message: str, failure: CommandError, cause: BaseException) -> None:
        """Write why the command ends, as JSON if that is asked for."""
        if self._json:
            kinds = (kind.__name__ for kind in type(cause).__mro__)
            code = _CODES_OF_EXITS.get(failure.returncode) or next(filter(_CODES.__contains__, kinds), "CommandError")
            self.tell(json_error(code, message, getattr(cause, "suggestions", ())))
        else:
            super().tell_failure(message, failure, cause)

    # Output

    @property
    def prints_json(self) -> bool:
        """Return whether JSON is asked for."""
        return bool(self._json)

    @property
    def lines(self) -> bool:
        """Return whether a JSON line for each is asked for."""
        return self._json == "lines"

    def command_line(self, *words: str) -> str:
        """Return the line for a shell that runs another command on the same store."""
        return shlex.join(["pqadmin", *words, *self._store_options])

    def undo_line(self, trash_id: str | None) -> list[str]:
        """Return the line that says how to undo an action, if it can be undone."""
        return [] if trash_id is None else [f"Undo: {self.command_line('undo', trash_id)}"]

    def answer(self, shape: Shape, *lines: str) -> None:
        """Print the answer: one JSON document, a JSON line for each of what it lists, or lines."""
        if self.lines:
            rest = {name: value for name, value in shape.items() if name != self.listed}
            listed = shape.get(self.listed)
            for each in listed if isinstance(listed, list) else ({},):
                self.stdout.write(json_text({**rest, **each}))
            return
        if self._json:
            self.stdout.write(json_text(shape, indent=2 if self.stdout.isatty() else None))
            return
        for line in lines:
            self.stdout.write(line)

    def tell(self, line: str) -> None:
        """Write one line to standard error at once."""
        self.stderr.write(line, lambda same: same)
        self.stderr.flush()

    def progress_stream(self) -> TextIO | OutputWrapper:
        """Return the stream for progress: the terminal itself, as Django's wrapper breaks lines; else the wrapper."""
        return sys.stderr if self.stderr.isatty() else self.stderr


def os_user() -> str:
    """Return the name of this process's user, or its number when it has no name.

    The environment is not asked, because a user can set it.
    """
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def refuse_missing(url: str) -> None:
    """Raise `StoreUnavailable` when there is no embedded store at the URL."""
    if is_missing(url):
        raise StoreUnavailable(
            "There is no store in {path}; create_queue makes one, --store or PQADMIN_STORE names another.",
            path=url.partition(":")[2],
        )


def is_missing(url: str) -> bool:
    """Return whether there is no embedded store at the URL of one."""
    engine, _, path = url.partition(":")
    return engine == "lmdb" and bool(path) and not Path(path).is_file() and not (Path(path) / "data.mdb").exists()


def _damage(url: str) -> StoreDamaged | None:
    """Return what is wrong with the file of a store; None if nothing is, or it has no file."""
    try:
        verify_store(url)
    except StoreDamaged as damage:
        return damage
    except Exception:  # what went wrong first is told
        return None
    return None


def _take_all_text(stream: TextIO | None, *, as_json: bool) -> None:
    """Let a stream of another encoding than UTF-8 take every text: JSON is UTF-8, and elsewhere signs are replaced."""
    if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
        if as_json:
            stream.reconfigure(encoding="utf-8")
        else:
            stream.reconfigure(errors="replace")
