"""What `serve` says when it starts."""

from typing import TextIO

from rich.console import Console
from rich.text import Text

from pqadmin.server.first_start import FirstAdmin


def show(out: TextIO, lines: list[tuple[str, str]]) -> None:
    """Print names and values in two columns, never wrapped."""
    console = Console(file=out, soft_wrap=True, highlight=False)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        console.print(Text.assemble((f"  {name:<{width}}  ", "dim"), (value, "bold")), soft_wrap=True)


def show_admin(out: TextIO, admin: FirstAdmin) -> None:
    """Print the first admin's name and password, the only time."""
    show(out, [("First start", "an admin was created; the password is shown only now"), *_login(admin)])


def _login(admin: FirstAdmin) -> list[tuple[str, str]]:
    return [("Name", admin.name), ("Password", admin.password)]
