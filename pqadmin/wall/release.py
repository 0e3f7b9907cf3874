"""Which release of the page this server hands out: a screen that shows another one loads itself anew."""

from functools import lru_cache

from pqadmin.live.release import mark
from pqadmin.wall.wire import PROTOCOL

#: Names with the content's hash in them.
STYLES = ("joined/wall.css",)
SCRIPT = "joined/wall.js"


@lru_cache(maxsize=1)
def release() -> str:
    """Return a digest of the protocol, the page's files and the version."""
    return mark(PROTOCOL, *STYLES, SCRIPT)
