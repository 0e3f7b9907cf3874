"""The limits of a queue: what may come in by push or move. What comes back from the trash always may.

A limit of items is checked against the counters without reading them serializably, so that pushes go on conflicting
with nothing: what is pushed at the very same moment may pass it by as much.
"""

from collections.abc import Iterable

from queues.errors import BadValue, QueueClosed, QueueFull, ValueTooLarge, Words, display_name
from queues.items.counters import counted_in, total
from queues.keys.queue_keys import SIDES, QueueKeys, Side
from queues.kv.port import Result, Transaction
from queues.model.codec import Raw
from queues.model.config import Config
from queues.model.records import MAX_VALUE_SIZE

_WAITING = ("ready", "delayed")
#: How a refusal ends that has nothing more to say.
_END = Words(".")


def admit(tr: Transaction, keys: QueueKeys, config: Config, sizes: Iterable[int], outcome: Words = _END) -> None:
    """Raise `QueueClosed`, `QueueFull` or `ValueTooLarge` unless values of these sizes may come in."""
    if config.closed:
        raise QueueClosed("Pushing to {queue} is closed{outcome}", queue=display_name(config.name), outcome=outcome)
    if not config.limited:
        return
    coming = list(sizes)
    if config.max_value is not None and coming and max(coming) > config.max_value:
        raise ValueTooLarge(
            "{queue} takes values of at most {most:,} bytes; this one has {size:,}{outcome}",
            queue=display_name(config.name),
            most=config.max_value,
            size=max(coming),
            outcome=outcome,
        )
    if config.max_depth is not None:
        waiting = _waiting(tr, keys, config)
        if waiting + len(coming) > config.max_depth:
            raise QueueFull(
                "{queue} holds {waiting:,} items, ready and delayed, and takes at most {most:,}{outcome}",
                queue=display_name(config.name),
                waiting=waiting,
                most=config.max_depth,
                outcome=outcome,
            )


def _waiting(tr: Transaction, keys: QueueKeys, config: Config) -> int:
    reads: list[tuple[Side, Result[bytes | None]]] = [
        (side, tr.snapshot.get(keys.generation(generation).counters.key(state, side)))
        for state in _WAITING
        for generation in counted_in(config, state)
        for side in SIDES
    ]
    return sum(total(read.wait()) if side == "in" else -total(read.wait()) for side, read in reads)


def encoded(value: object, config: Config) -> bytes:
    """Return a value as the bytes that the queue stores; raise `BadValue`, `Undecodable`, `ValueTooLarge`."""
    codec = config.values
    return check_value(value if codec is None else codec.encode(value))


def stored_value(value: object, config: Config) -> bytes:
    """Return a value that a person gave, bytes as they are to be stored; raise as `encoded` does."""
    return encoded(Raw(value) if isinstance(value, bytes) else value, config)


def check_value(value: object) -> bytes:
    """Return a value as bytes; raise `BadValue`, `ValueTooLarge`."""
    if isinstance(value, bytearray | memoryview | Raw):
        value = bytes(value)
    if not isinstance(value, bytes):
        raise BadValue("A value is bytes, not {type}: encode it first.", type=type(value).__name__)
    if (n := len(value)) > MAX_VALUE_SIZE:
        raise ValueTooLarge("A value has at most {most:,} bytes; this one has {n:,}.", most=MAX_VALUE_SIZE, n=n)
    return value
