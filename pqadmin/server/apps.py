"""The server app: start, stop, health, headers and the way to the store."""

from django.apps import AppConfig


class ServerConfig(AppConfig):
    name = "pqadmin.server"

    def ready(self) -> None:
        """Register the checks."""
        from pqadmin.server import checks  # noqa: F401
