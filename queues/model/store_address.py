"""Address of a store, by which another process opens it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from queues.model.tuples import pack, unpack_behind


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddress:
    """A store's absolute URL, root and size limit."""

    url: str
    root: tuple[Any, ...]
    max_bytes: int | None
    #: Of a store behind a server.
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str, root: tuple[Any, ...], max_bytes: int | None) -> Self | None:
        """Return the address of an open store; None for a store in this process's memory."""
        engine, _, path = url.partition(":")
        if engine == "memory":
            return None
        return cls(url=f"{engine}:{Path(path).absolute() if path else ''}", root=tuple(root), max_bytes=max_bytes)

    def encode(self) -> str:
        """Return the address as one line of text."""
        return json.dumps(
            {"url": self.url, "root": pack(*self.root).hex(), "max_bytes": self.max_bytes, "token": self.token}
        )

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return the address in a line of `encode`."""
        fields = json.loads(text)
        root = unpack_behind(bytes.fromhex(fields["root"]), 0)
        return cls(url=fields["url"], root=root, max_bytes=fields["max_bytes"], token=fields["token"])
