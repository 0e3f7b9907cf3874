"""Reads lists of items page by page."""

from collections.abc import Callable, Iterator
from typing import Any


def all_items(page: Callable[..., Any], *, limit: int = 1_000, **options: Any) -> Iterator[Any]:
    """Return every item of a list, such as `queue.items`, in order."""
    after = None
    while True:
        this = page(limit=limit, after=after, **options)
        yield from this.items
        after = this.cursor
        if after is None:
            return
