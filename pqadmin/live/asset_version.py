"""Version of the pages that this server hands out: scripts of another one must not read what it says."""

import hashlib
from functools import lru_cache

from django.templatetags.static import static
from django.utils.translation import override

from pqadmin import __version__
from pqadmin.live.board.row_html import render_blank_row
from pqadmin.live.frame_json import PROTOCOL

#: A name with the content's hash in it.
_SCRIPT = "joined/main.js"


@lru_cache(maxsize=1)
def release() -> str:
    """Return a digest of the protocol, the scripts, the rows and the version."""
    with override(None):
        row = render_blank_row(can_act=True)
    return mark(PROTOCOL, _SCRIPT, markup=row)


def mark(protocol: int, *files: str, markup: str = "") -> str:
    """Return a digest of the protocol, the version, static files and markup."""
    told = "\n".join([str(protocol), __version__, *map(static, files), markup])
    return hashlib.sha256(told.encode()).hexdigest()[:12]
