"""Answers packed with gzip, some as small as it gets: a table is mostly repetition.

What may hold long values that people wrote is packed as Django does: of data of two symbols, level 9 takes thirty times
as long as the usual 6.
"""

import gzip
import io
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware, re_accepts_gzip
from django.utils.cache import patch_vary_headers

#: On a page of a hundred rows level 9 takes 2 ms more than the usual 6, and leaves 5 % less.
_LEVEL = 9
_MARK = "_packed_tightly"


def tightly(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Have the pages of a view packed as small as it gets."""

    @wraps(view)
    def marked(*args: Any, **kwargs: Any) -> HttpResponse:
        response = view(*args, **kwargs)
        setattr(response, _MARK, True)
        return response

    return marked


class PackingMiddleware(GZipMiddleware):
    """Django's middleware, but for the level of what is marked."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Pack an answer that the browser takes packed."""
        if not getattr(response, _MARK, False):
            return super().process_response(request, response)
        content = response.content  # type: ignore[attr-defined] # views that are marked make whole answers
        patch_vary_headers(response, ("Accept-Encoding",))
        if not re_accepts_gzip.search(request.headers.get("Accept-Encoding", "")):
            return response
        packed = _packed(content, self.max_random_bytes)
        if len(packed) >= len(content):
            return response
        response.content = packed  # type: ignore[attr-defined] # it has one
        response.headers["Content-Length"] = str(len(packed))
        response.headers["Content-Encoding"] = "gzip"
        if (etag := response.headers.get("ETag", "")).startswith('"'):
            response.headers["ETag"] = f"W/{etag}"
        return response


def _packed(content: bytes, most: int) -> bytes:
    """Pack, with a file name of random length: the length shall not tell what is in the page (BREACH)."""
    buffer = io.BytesIO()
    name = "a" * secrets.randbelow(most)
    with gzip.GzipFile(name, "wb", compresslevel=_LEVEL, fileobj=buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()
