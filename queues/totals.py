"""Totals as the store holds them: 8 bytes, little-endian, added to without reading."""

from __future__ import annotations


def total(value: bytes | None) -> int:
    """Return a total as a number; absent is 0."""
    return 0 if value is None else int.from_bytes(value, "little", signed=True)


def total_bytes(number: int) -> bytes | None:
    """Return the bytes that hold a total; 0 stands for absent, as totals only grow."""
    return None if number == 0 else number.to_bytes(8, "little", signed=True)
