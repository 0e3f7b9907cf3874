"""Subspaces: all keys behind one packed prefix, as in FoundationDB's bindings."""

from typing import Any

import msgspec

from queues.model.tuples import FIRST, Range, children, pack, unpack_again, unpack_behind


class Subspace(msgspec.Struct, frozen=True):
    """Keys that begin with a packed prefix. Ranges are (begin, end) with the end excluded."""

    prefix: bytes

    def key(self, *elements: Any) -> bytes:
        """Return the key of these elements."""
        return self.prefix + pack(*elements)

    def at(self, suffix: bytes) -> bytes:
        """Return the key with this packed end, or of a cursor's position."""
        return self.prefix + suffix

    def sub(self, *elements: Any) -> "Subspace":
        """Return the subspace behind these elements."""
        return Subspace(self.prefix + pack(*elements))

    @property
    def all(self) -> Range:
        """The range of all its keys."""
        return children(self.prefix)

    def below(self, *elements: Any) -> Range:
        """Return the range of the keys that begin with these elements and have more."""
        return children(self.key(*elements))

    def before(self, *elements: Any) -> Range:
        """Return the range of the keys before this one."""
        return self.prefix + FIRST, self.key(*elements)

    def older(self, than: bytes | None) -> Range:
        """Return the range of the ids before this one; None: of all."""
        return self.all if than is None else self.before(than)

    def suffix_of(self, key: bytes) -> bytes:
        """Return the packed end of a key."""
        return key[len(self.prefix) :]

    def elements(self, key: bytes) -> tuple[Any, ...]:
        """Return the elements of a key."""
        return unpack_behind(key, len(self.prefix))

    def elements_again(self, key: bytes) -> tuple[Any, ...]:
        """Return the same, cached: for ends of keys that many queues share, such as totals."""
        return unpack_again(key, len(self.prefix))


def last_element(key: bytes) -> Any:
    """Return the last element of a key, such as the id in an entry of an index."""
    return unpack_behind(key, 0)[-1]
