"""Static files: named by their content, compressed, prepared in the data folder at start.

`prepare` runs `collectstatic` when the files of the package have changed. Without prepared files (tests, another
server) pages use the plain names, which are served as they are.
"""

import hashlib
import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from servestatic import ServeStaticASGI
from servestatic.storage import CompressedManifestStaticFilesStorage

from pqadmin.server.security import HEADERS

HASHED = re.compile(r"^.+\.[0-9a-f]{12}\..+$")
YEAR = 365 * 24 * 3600
_MARK = ".prepared"


class AssetStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Storage of static files under names with a hash in them, also inside stylesheets."""

    def stored_name(self, name: str) -> str:
        """Return the hashed name if the files are prepared, else the name itself."""
        hashed: str = self.hashed_files.get(self.hash_key(self.clean_name(name)), name)
        return hashed


def prepare() -> bool:
    """Collect the static files if they changed since the last time; return whether they had.

    The mark is there only while all files are whole. Without it, as after a kill or on a disk that was full, they are
    all made anew: a file that was cut off looks like one that is up to date.
    """
    mark = Path(settings.STATIC_ROOT) / _MARK
    wanted = _fingerprint()
    whole = mark.exists()
    if whole and mark.read_text(encoding="ascii") == wanted:
        return False
    mark.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, verbosity=0, clear=not whole)
    mark.write_text(wanted, encoding="ascii")
    return True


def serve(application: Any) -> Any:
    """Return `application` with the static files in front of it."""
    files = ServeStaticASGI(
        application,
        max_age=60,
        immutable_file_test=HASHED.pattern,
        allow_all_origins=False,
        add_headers_function=_add_headers,
    )
    root = Path(settings.STATIC_ROOT)
    if (root / _MARK).exists():
        files.add_files(str(root), prefix=settings.STATIC_URL)
        for own in (_MARK, AssetStorage.manifest_name):
            files.files.pop(settings.STATIC_URL + own, None)
    else:
        for path, storage in _sources():
            files.add_file_to_dictionary(
                settings.STATIC_URL + path.replace("\\", "/"), storage.path(path), root=storage.location
            )
    return files


def _add_headers(headers: Any, path: str, url: str) -> None:
    for name, value in HEADERS.items():
        headers[name] = value


def _sources() -> list[tuple[str, Any]]:
    return [(path, storage) for finder in finders.get_finders() for path, storage in finder.list(None)]


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path, storage in sorted(_sources(), key=lambda source: source[0]):
        state = Path(storage.path(path)).stat()
        digest.update(f"{path}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return digest.hexdigest()
