"""The wall: boards for screens that hang somewhere, and the links that open them."""

from django.apps import AppConfig


class WallConfig(AppConfig):
    """Has the guard of open sockets ask this app about links."""

    name = "pqadmin.wall"

    def ready(self) -> None:
        """Answer for links from now on."""
        from pqadmin.live import guard
        from pqadmin.wall import links

        guard.links_answered_by(links.scopes)
