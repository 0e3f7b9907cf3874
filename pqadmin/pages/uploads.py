"""Uploads: small files in memory. A larger one is read past, and the view learns it."""

from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import MemoryFileUploadHandler, SkipFile
from django.http import HttpRequest

#: What a job pushes is all looked through before it begins, and held in memory for so long.
MAX_FILE = 20_000_000
_TOO_LARGE = "_pqadmin_file_too_large"


class BoundedUpload(MemoryFileUploadHandler):
    """Keeps the files of a request up to the limit; writes nothing to the disk."""

    _kept = 0

    def handle_raw_input(self, *args: Any, **kwargs: Any) -> None:
        """Take every form, whatever its length says."""
        self.activated = True

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Keep a chunk, unless that would be too much."""
        self._kept += len(raw_data)
        if self._kept > MAX_FILE:
            setattr(self.request, _TOO_LARGE, True)
            raise SkipFile
        super().receive_data_chunk(raw_data, start)

    def file_complete(self, file_size: int) -> "UploadedFile[bytes] | None":
        """Hand the file out."""
        return None if getattr(self.request, _TOO_LARGE, False) else super().file_complete(file_size)


def too_large(request: HttpRequest) -> bool:
    """Say whether a file of this request was read past."""
    _ = request.FILES  # read, so that it is known
    return bool(getattr(request, _TOO_LARGE, False))
