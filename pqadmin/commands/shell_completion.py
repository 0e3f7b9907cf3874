"""Answers to a shell that completes a command line: commands, options, choices, and names of queues.

Imported only when a shell asks. Django is not set up, so that an answer comes soon.
"""

import importlib.util
import logging
import os
import threading
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path

from argcomplete.completers import BaseCompleter, FilesCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.lexers import split_line
from django.core.management.base import BaseCommand, CommandError

from pqadmin.commands.help import GROUPS
from pqadmin.commands.saved_tokens import is_server, read_token, token_for
from pqadmin.commands.store_command import refuse_missing
from pqadmin.conf import environment
from queues import open_store
from queues.errors import StoreError

#: Arguments that are names of queues.
_QUEUES = ("queue", "queues", "name", "source", "target", "confirm")
#: Seconds after which a store that does not answer has no names.
_PATIENCE = 2.0


def complete(variables: Mapping[str, str] = os.environ) -> None:
    """Write the completions that a shell asks for by these variables, and end the process."""
    logging.disable()
    words = split_line(variables["COMP_LINE"], int(variables["COMP_POINT"]))[3]
    if len(words) < 2:
        parser = ArgumentParser("pqadmin")
        parser.add_argument("command", choices=[name for names in GROUPS.values() for name in names])
    else:
        parser = _parser(words[1])
        os.environ["_ARGCOMPLETE"] = "2"  # the command's word is skipped, too
    CompletionFinder()(parser, always_complete_options=False, default_completer=_Names())


def _parser(name: str) -> ArgumentParser:
    """Return the parser of a command; one without arguments for the site's own commands, which need Django."""
    module = f"pqadmin.commands.management.commands.{name}"
    if not name.isidentifier() or importlib.util.find_spec(module) is None:
        return ArgumentParser(name, add_help=False)
    command: BaseCommand = importlib.import_module(module).Command()
    return command.create_parser("pqadmin", name)


class _Names(BaseCompleter):
    """Names of queues for the arguments that are such names, files for the rest."""

    def __call__(self, *, prefix: str, action: Action, parser: ArgumentParser, parsed_args: Namespace) -> list[str]:
        """Return what completes an argument."""
        if action.dest not in _QUEUES:
            return [*FilesCompleter()(prefix)]
        return _names(prefix, parsed_args)


def _names(prefix: str, parsed_args: Namespace) -> list[str]:
    """Return the names of the queues that begin so; none of a store that is away."""
    found: list[str] = []

    def read() -> None:
        try:
            own = environment.read_store(os.environ)
            url = parsed_args.store or parsed_args.server or own
            refuse_missing(url)
            token = None
            if is_server(url) and parsed_args.token_file:
                token = read_token(Path(parsed_args.token_file))
            elif is_server(url):
                token = token_for(url, own=own, token=environment.read_token(os.environ))
            with open_store(url, token=token) as store:
                found.extend(name for name in store.directory() if name.startswith(prefix))
        except (StoreError, CommandError, OSError, environment.BadSetting):
            return

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(_PATIENCE)
    return [*found]
