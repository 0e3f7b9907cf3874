"""LMDB's two meta pages: which commit is the newest, and how long the file has to be."""

import hashlib
import os
import struct
from typing import NamedTuple

#: A meta page, from its magic number on: magic, version, address, map size; two trees (page size, flags, depth, pages
#: of three kinds, entries, root); the last page, the number of the commit.
_META = struct.Struct("=IIQQ" + 2 * "IHHQQQQQ" + "QQ")
_HEADER_BYTES, _MAGIC = 16, 0xBEEFC0DE
#: Bytes of each meta page that are kept: more than LMDB uses.
USED = 256
DIGEST_BYTES = 16
_NO_PAGE = (1 << 64) - 1


class MetaPages(NamedTuple):
    """What the two meta pages of a file say."""

    page_size: int
    #: Of the newest commit: its number, the bytes of the file, and the first pages of its two trees.
    txnid: int
    needed: int
    roots: tuple[int, ...]
    #: The used bytes of both pages.
    content: bytes

    @classmethod
    def of(cls, content: bytes) -> "MetaPages":
        """Return what the used bytes of two valid pages say."""
        newest = max((_META.unpack_from(content, at + _HEADER_BYTES) for at in (0, USED)), key=lambda meta: meta[-1])
        page_size = newest[4]
        roots = tuple(page for page in (newest[11], newest[19]) if page != _NO_PAGE)
        return cls(page_size, newest[-1], (newest[-2] + 1) * page_size, roots, content)

    @classmethod
    def read(cls, descriptor: int) -> "MetaPages | None":
        """Read the meta pages of a file; None when it has none. Raises EOFError when it ends within them."""
        at, content = 0, b""
        for _ in range(2):
            page = os.pread(descriptor, USED, at)
            if len(page) < USED:
                if at:
                    raise EOFError("The file ends within its meta pages.")
                return None
            meta = _META.unpack_from(page, _HEADER_BYTES)
            if meta[0] != _MAGIC:
                return None
            content += page
            at = meta[4]
        return cls.of(content)

    def digest_of_roots(self, descriptor: int) -> bytes:
        """Return the digest of the first pages of both trees, as the file has them."""
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        for page in self.roots:
            digest.update(os.pread(descriptor, self.page_size, page * self.page_size))
        return digest.digest()


def write(descriptor: int, pages: MetaPages) -> None:
    """Write both meta pages. Raises OSError."""
    for number in range(2):
        os.pwrite(descriptor, pages.content[number * USED :][:USED], number * pages.page_size)
