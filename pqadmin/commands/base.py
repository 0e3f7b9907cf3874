"""The base of all commands of pqadmin."""

import inspect
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from pqadmin import __version__


def program(path: str) -> str:
    """Return how a user started pqadmin, by the path of its script."""
    name = Path(path).name
    return "python -m pqadmin" if name == "__main__.py" else name


class OwnCommand(BaseCommand):
    """A command whose docstring is its help, and whose `--version` is pqadmin's, not Django's."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take the help text from the docstring."""
        super().__init_subclass__(**kwargs)
        cls.help = " ".join(inspect.cleandoc(cls.__doc__ or "").split())

    def get_version(self) -> str:
        """Return what `--version` prints."""
        return __version__
