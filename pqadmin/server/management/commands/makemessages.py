"""`makemessages`, which collects what the errors of the queue core say as well: the site translates it.

The same words are collected from the readers of files with items: these run by command and on a page.
"""

from pathlib import Path
from typing import Any

from django.core.management.commands import makemessages

import queues
from queues import errors

_CORE = str(Path(queues.__file__).parent)
#: In the core, what makes words is called with their template first; this one alone is told a queue's name before it.
_NAMED = "NotForAttached"
#: In this folder of the site it is the same, with these more.
_READERS, _OF_READERS = Path("files"), ("Unfit", "BadJSON", "BadFormat")
_KEYWORDS = [
    *(f"--keyword={name}" for name in (*errors.ERRORS, "Words") if name != _NAMED),
    *(f"--keyword={name}" for name in _OF_READERS),
    f"--keyword={_NAMED}:2",
]


class Command(makemessages.Command):
    """Collect messages from the site in the current folder, and from the queue core."""

    def find_files(self, root: str) -> list[Any]:
        """Find the core's modules and the templates beside the site too."""
        templates = str(Path(root).resolve().parent / "templates")
        return [*super().find_files(root), *super().find_files(templates), *super().find_files(_CORE)]

    def process_locale_dir(self, locale_dir: str, files: list[Any]) -> None:
        """Collect from the site as usual, and from the core by its errors' names."""
        core = [file for file in files if file.dirpath.startswith(_CORE) or Path(file.dirpath) == _READERS]
        super().process_locale_dir(locale_dir, [file for file in files if file not in core])
        usual = self.xgettext_options
        self.xgettext_options = [*usual, *_KEYWORDS]
        super().process_locale_dir(locale_dir, core)
        self.xgettext_options = usual
