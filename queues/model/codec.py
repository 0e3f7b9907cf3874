"""Codecs: how the values of a queue become bytes, and bytes become values again."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any, Literal, cast, get_args

import msgspec

from queues.errors import BadCodec, BadValue, Undecodable, ValueTooLarge, display_name
from queues.model.records import MAX_VALUE_SIZE

#: `bytes`: values are bytes. `text`: str in UTF-8. `json`, `msgpack`: what msgspec encodes.
CodecName = Literal["bytes", "text", "json", "msgpack"]
CODECS: tuple[str, ...] = get_args(CodecName)
#: Levels of lists and objects of a value in json or msgpack; what parses JSON follows at least so many.
MAX_NESTING = 200

_FAILURES = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)


class Raw(bytes):
    """A value that is encoded already. A push checks that the queue's codec decodes it, and stores it as it is."""


@dataclass(frozen=True, slots=True)
class Codec:
    """The codec of one queue, `text`, `json` or `msgpack`; None stands for `bytes`."""

    name: str
    #: The queue's name, for errors.
    queue: str

    def encode(self, value: object) -> bytes:
        """Return a value as bytes. Raise `BadValue` when this codec cannot encode it, or it is nested too deeply."""
        try:
            if isinstance(value, Raw):
                decoded: Any = _DECODERS.get(self.name, _unknown)(value)
                if self._may_be_deep(value) and _is_deep(decoded):
                    raise RecursionError
                return bytes(value)
            encode: Callable[[Any], bytes] = _ENCODERS.get(self.name, _unknown)
            stored = encode(value)
            if self._may_be_deep(stored) and _is_deep(_DECODERS[self.name](stored)):
                raise RecursionError
        except RecursionError:
            raise BadValue(
                "{queue}: lists and objects of a value are nested at most {most} levels deep; these are deeper.",
                queue=display_name(self.queue),
                most=MAX_NESTING,
            ) from None
        except _FAILURES as error:
            words = (
                "{queue} has the codec {codec}, which cannot decode this value: {error}"
                if isinstance(value, Raw)
                else "{queue} has the codec {codec}, which cannot encode this value: {error}"
            )
            raise BadValue(words, queue=display_name(self.queue), codec=self.name, error=_short(error)) from error
        return stored

    def _may_be_deep(self, stored: bytes) -> bool:
        """Say whether a value may be nested too deeply: it has enough lists and objects."""
        if self.name == "json":
            return stored.count(b"[") + stored.count(b"{") > MAX_NESTING
        return self.name == "msgpack" and len(stored) > MAX_NESTING

    def decode(self, raw: bytes, *, truncated: bool = False) -> Any:
        """Return the value of these bytes. Raise `Undecodable` when they are not of this codec, or not whole."""
        if truncated:
            raise Undecodable("Only the beginning of this value was read: its raw bytes are there, its value is not.")
        try:
            return _DECODERS.get(self.name, _unknown)(raw)
        except _FAILURES as error:
            raise Undecodable(
                "{queue} has the codec {codec}, which cannot decode this value: {error}",
                queue=display_name(self.queue),
                codec=self.name,
                error=_short(error),
            ) from error


def codec_of(name: str, queue: str) -> Codec | None:
    """Return the codec of this name for a queue; None stands for `bytes`."""
    return None if name == "bytes" else Codec(name, queue)


def encoded(value: object, codec: Codec | None) -> bytes:
    """Return a value as the bytes that a queue stores; raise `BadValue`, `Undecodable`, `ValueTooLarge`."""
    stored = value if codec is None else codec.encode(value)
    if not isinstance(stored, bytes | bytearray | memoryview):
        raise BadValue("A value is bytes, not {type}: encode it first.", type=type(stored).__name__)
    stored = bytes(stored)
    if (n := len(stored)) > MAX_VALUE_SIZE:
        raise ValueTooLarge("A value has at most {most:,} bytes; this one has {n:,}.", most=MAX_VALUE_SIZE, n=n)
    return stored


def encoded_by_person(value: object, codec: Codec | None) -> bytes:
    """Return a value that a person gave, bytes as they are to be stored. Raise as `encoded` does."""
    return encoded(Raw(value) if isinstance(value, bytes) else value, codec)


def check_codec(codec: object) -> CodecName:
    """Return a codec's name; raise `BadCodec`."""
    if not isinstance(codec, str) or codec not in CODECS:
        raise BadCodec("A queue's codec is bytes, text, json or msgpack, not {codec}.", codec=f"{codec!r:.40}")
    return cast(CodecName, codec)


def _text(value: object) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"a text is str, not {type(value).__name__}")
    return value.encode()


def _json(value: object) -> bytes:
    stored = msgspec.json.encode(value)
    if b"null" in stored and not _is_finite(msgspec.to_builtins(value)):
        raise ValueError("JSON has no infinite numbers, and no NaN")
    return stored


def _is_finite(value: Any) -> bool:
    """Say whether a value has no number that msgspec writes as null."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
        elif isinstance(one, float) and not isfinite(one):
            return False
    return True


def _unknown(value: object) -> Any:
    raise ValueError("this release does not know the codec")


def _is_deep(value: Any) -> bool:
    """Say whether a decoded value is nested too deeply, level by level: the stack may have no room."""
    level = [value] if isinstance(value, dict | list | tuple) else []
    for _ in range(MAX_NESTING):
        inside = chain.from_iterable((*one, *one.values()) if isinstance(one, dict) else one for one in level)
        level = [one for one in inside if isinstance(one, dict | list | tuple)]
        if not level:
            return False
    return True


def _short(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:200]


_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "text": _text,
    "json": _json,
    "msgpack": msgspec.msgpack.encode,
}
_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "text": bytes.decode,
    "json": msgspec.json.decode,
    "msgpack": msgspec.msgpack.decode,
}
