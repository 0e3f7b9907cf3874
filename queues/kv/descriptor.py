"""File descriptors that threads share."""

import os
from collections.abc import Callable


class Descriptor(int):
    """A file descriptor, closed with the last reference to it: no thread uses its number for another file."""

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self)
