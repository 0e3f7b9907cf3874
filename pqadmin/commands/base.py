"""The base of all commands of pqadmin."""

import inspect
from typing import Any

from django.core.management.base import BaseCommand

from pqadmin import __version__


class OwnCommand(BaseCommand):
    """A command whose docstring is its help, and whose `--version` is pqadmin's, not Django's."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take the help text from the docstring."""
        super().__init_subclass__(**kwargs)
        cls.help = " ".join(inspect.cleandoc(cls.__doc__ or "").split())

    def get_version(self) -> str:
        """Return what `--version` prints."""
        return __version__
