"""The lines that `serve` prints when it starts."""

from typing import TextIO

from rich.console import Console
from rich.text import Text


def show(out: TextIO, lines: list[tuple[str, str]]) -> None:
    """Print names and values in two columns, never wrapped."""
    console = Console(file=out, soft_wrap=True, highlight=False)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        console.print(Text.assemble((f"  {name:<{width}}  ", "dim"), (value, "bold")), soft_wrap=True)
