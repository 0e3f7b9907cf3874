"""What all commands of pqadmin's own have in common."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from pqadmin import __version__


class OwnCommand(BaseCommand):
    """A command whose `--version` says pqadmin's version, not Django's."""

    def get_version(self) -> str:
        """Return what `--version` prints."""
        return __version__
