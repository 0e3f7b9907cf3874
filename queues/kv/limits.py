"""Sizes that every engine refuses alike, and the arithmetic of its counters."""

from queues.kv.errors import KeyTooLarge, TransactionTooLarge, TransactionTooOld, ValueTooLarge
from queues.kv.port import MAX_KEY_SIZE, MAX_TRANSACTION_SECONDS, MAX_TRANSACTION_SIZE, MAX_VALUE_SIZE

#: Keys from here on belong to the engines, as in FoundationDB; ranges end here at the latest.
KEYS_END = b"\xff"
#: The largest limit of a store's bytes: half of what a process can map.
MOST_BYTES = 1 << 46

_WORD = 1 << 64


def check_key(key: bytes) -> None:
    """Refuse a key that some engine could not hold: KeyTooLarge, or ValueError for an illegal one."""
    if len(key) > MAX_KEY_SIZE:
        raise KeyTooLarge(
            "The key has {size} bytes; at most {most} are allowed. Nothing was written.",
            size=len(key),
            most=MAX_KEY_SIZE,
        )
    if not b"" < key < KEYS_END:
        raise ValueError("A key is never empty and never begins with byte 0xff.")


def check_value(value: bytes) -> None:
    """Refuse a value that some engine could not hold: ValueTooLarge, or TypeError for what is not bytes."""
    if not isinstance(value, bytes):
        raise TypeError(f"A value is bytes, not {type(value).__name__}.")
    if len(value) > MAX_VALUE_SIZE:
        raise ValueTooLarge(
            "The value has {size:,} bytes; at most {most:,} are allowed. Nothing was written.",
            size=len(value),
            most=MAX_VALUE_SIZE,
        )


def check_limit(limit: int) -> None:
    """Refuse a range read that is not limited to at least one pair."""
    if limit < 1:
        raise ValueError(f"A range read's limit is at least 1, not {limit}.")


def too_large() -> TransactionTooLarge:
    """Build the error of a transaction that writes too much."""
    return TransactionTooLarge(
        "The transaction writes more than {most:,} bytes; nothing was written. Do it in steps.",
        most=MAX_TRANSACTION_SIZE,
    )


def too_old() -> TransactionTooOld:
    """Build the error of a transaction that ran too long."""
    return TransactionTooOld(
        "The transaction ran longer than {seconds:g} seconds; nothing was written. Do it in steps.",
        seconds=MAX_TRANSACTION_SECONDS,
    )


def added(old: bytes | None, delta: int) -> bytes:
    """Return the counter `old` (64 bit, little-endian; absent counts as 0) plus `delta`, wrapping."""
    base = int.from_bytes(old[:8], "little") if old else 0
    return ((base + delta) % _WORD).to_bytes(8, "little")


def raised(old: bytes | None, value: int) -> bytes:
    """Return the larger of the number `old` (64 bit, little-endian; absent counts as 0) and `value`."""
    if not 0 <= value < _WORD:
        raise ValueError(f"max() takes an unsigned 64-bit number, not {value}.")
    base = int.from_bytes(old[:8], "little") if old else 0
    return max(base, value).to_bytes(8, "little")
