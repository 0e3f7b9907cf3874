"""Application keys: a space is a fenced range of keys beside the queues, in the same transactions."""

import math
from typing import Any, TypeAlias

from queues.context import StoreContext
from queues.errors import BadKey, BadLimit, BadName, BadValue, KeyTooLarge, ValueTooLarge, is_invisible
from queues.keys.queue_keys import Subspace
from queues.kv.port import MAX_KEY_SIZE, MAX_VALUE_SIZE, ReadTransaction, Transaction
from queues.model.names import canonical

#: What a key is made of; whole numbers have at most 255 bytes, and no float is NaN.
Element: TypeAlias = "bytes | str | int | float | bool | tuple[Element, ...] | None"
#: One element stands for the tuple that holds it alone.
Key: TypeAlias = "Element | tuple[Element, ...]"

#: Bytes of a space's name in UTF-8.
MAX_NAME = 100
#: Of a whole number in a key.
MAX_BITS = 255 * 8
#: Pairs of one range read.
MAX_RANGE = 1_000


class Space:
    """Keys and values of the application, stored beside the queues. Thread-safe.

    A key is a tuple of bytes, text, numbers, booleans, None and such tuples, ordered as FoundationDB's tuple layer
    orders them; `"total"` is the same key as `("total",)`. A value is bytes, at most 100,000. Each method is one
    transaction; given `tr=` it joins that one. No key of a space can be a key of a queue or of another space.
    """

    def __init__(self, context: StoreContext, name: str) -> None:
        self.name = check_name(name)
        self._context = context
        self._keys = context.keyspace.spaces.sub(self.name)
        self._change = context.keyspace.space_changes.key(self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def get(self, key: Key, *, tr: ReadTransaction | None = None) -> bytes | None:
        """Return the value of a key; None when it is absent. Raises `BadKey`, `KeyTooLarge`."""
        packed = self._packed(key)
        return self._context.read(lambda tr: tr.get(packed).wait(), tr)

    def set(self, key: Key, value: bytes, *, tr: Transaction | None = None) -> None:
        """Write one pair, replacing the old value. Raises `BadKey`, `BadValue`, `KeyTooLarge`, `ValueTooLarge`."""
        packed = self._packed(key)
        if not isinstance(value, bytes):
            raise BadValue("A value is bytes, not {type}: encode it first.", type=type(value).__name__)
        if len(value) > MAX_VALUE_SIZE:
            raise ValueTooLarge(
                "A value has at most {most:,} bytes; this one has {n:,}.", most=MAX_VALUE_SIZE, n=len(value)
            )

        def write(tr: Transaction) -> None:
            tr.set(packed, value)
            tr.add(self._change, 1)

        self._context.transact(write, tr)

    def clear(self, key: Key, *, tr: Transaction | None = None) -> None:
        """Remove one key; an absent key is no error. Raises `BadKey`, `KeyTooLarge`."""
        packed = self._packed(key)

        def write(tr: Transaction) -> None:
            tr.clear(packed)
            tr.add(self._change, 1)

        self._context.transact(write, tr)

    def get_range(
        self,
        begin: Key = None,
        end: Key = None,
        *,
        prefix: tuple[Element, ...] = (),
        limit: int = 100,
        reverse: bool = False,
        tr: ReadTransaction | None = None,
    ) -> list[tuple[tuple[Element, ...], bytes]]:
        """Return at most `limit` pairs (1 to 1,000) with `begin` <= key < `end`. In order, or from the end backwards.

        Without bounds: all pairs of the space. `prefix`: only keys that begin with these elements and have more. Keys
        are returned as tuples. The next page begins at `(*last, None)`; backwards, it ends at `last`.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_RANGE:
            raise BadLimit("A range read has 1 to {most:,} pairs.", most=MAX_RANGE)
        first, last = self._bound(prefix).all if prefix else self._keys.all
        if begin is not None:
            first = max(first, self._packed(begin, more=1))  # room for the None behind the longest key
        if end is not None:
            last = min(last, self._packed(end, more=1))
        if first >= last:
            return []
        pairs = self._context.read(lambda tr: tr.get_range(first, last, limit=limit, reverse=reverse).wait(), tr)
        return [(self._keys.elements(key), value) for key, value in pairs]

    def _packed(self, key: Key, more: int = 0) -> bytes:
        packed = self._bound(key).prefix
        if len(packed) > MAX_KEY_SIZE + more:
            most = MAX_KEY_SIZE - len(self._keys.prefix)
            raise KeyTooLarge(
                "A key of the space {space} has at most {most} bytes when it is packed; this one has {size:,}.",
                space=self.name,
                most=most,
                size=len(packed) - len(self._keys.prefix),
            )
        return packed

    def _bound(self, key: Key) -> Subspace:
        elements = key if isinstance(key, tuple) else (key,)
        if not elements:
            raise BadKey("A key needs an element at least.")
        try:
            check_elements(elements)
            return self._keys.sub(*elements)
        except RecursionError:
            raise BadKey("A key cannot be nested so deeply.") from None


def check_name(name: str) -> str:
    """Return the name of a space in NFC; raise `BadName`."""
    if not isinstance(name, str):
        raise BadName("A space's name is text, not {type}.", type=type(name).__name__)
    name = canonical(name)
    size = len(name.encode("utf-8", "surrogatepass"))
    if not 1 <= size <= MAX_NAME:
        raise BadName("A space's name has 1 to {most} bytes; this one has {size:,}.", most=MAX_NAME, size=size)
    if any(is_invisible(character) for character in name):
        raise BadName("A space's name cannot hold spaces, or characters that cannot be seen.")
    return name


def check_elements(elements: tuple[Any, ...]) -> None:
    """Raise `BadKey` for what a key cannot hold."""
    for element in elements:
        if isinstance(element, tuple):
            check_elements(element)
        elif isinstance(element, float) and math.isnan(element):
            raise BadKey("A key cannot hold NaN: it has no place in the order.")
        elif isinstance(element, int) and element.bit_length() > MAX_BITS:
            raise BadKey("A whole number in a key has at most 255 bytes.")
        elif isinstance(element, str) and element != element.encode(errors="ignore").decode():
            raise BadKey("A text in a key holds half of a character, which is no text.")
        elif not (element is None or isinstance(element, bytes | str | int | float)):
            raise BadKey(
                "A key is made of bytes, text, numbers, booleans, None and tuples of these, not {type}.",
                type=type(element).__name__,
            )
