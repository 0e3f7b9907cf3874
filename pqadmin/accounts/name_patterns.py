"""Globs over names of queues: checked, with errors in the reader's language."""

import re
import unicodedata

from django.utils.translation import gettext as _

from queues.admin import MAX_NAME_CHARACTERS, canonical_name, check_name

#: Wildcards in one glob; a glob with more is unreadable.
MAX_WILDCARDS = 16


class BadGlob(ValueError):
    """The text can match no queue's name."""


def check_glob(text: str) -> str:
    """Return the glob in its one spelling; raises BadGlob, or BadName for what no name can hold."""
    glob = re.sub(r"\*+", "*", canonical_name(text.strip()))
    if not glob:
        raise BadGlob(_("A glob is a queue's name in which * stands for any characters and ? for one."))
    if len(glob) > MAX_NAME_CHARACTERS:
        words = _("A glob has at most %(most)s characters; this one has %(n)s.")
        raise BadGlob(words % {"most": MAX_NAME_CHARACTERS, "n": f"{len(glob):,}"})
    if sum(glob.count(wildcard) for wildcard in "*?") > MAX_WILDCARDS:
        raise BadGlob(_("A glob has at most %(most)s wildcards.") % {"most": MAX_WILDCARDS})
    # A combining mark may follow a wildcard as it follows a letter: check with a letter in the wildcard's place.
    check_name(unicodedata.normalize("NFC", re.sub(r"[*?]", "x", glob)))
    return glob
