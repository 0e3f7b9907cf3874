"""How requests reach the process that hosts an embedded store, and how their answers come back.

Only requests of the hot path are sent: pushes, pops, leases, acknowledgements and extensions, of this store's own
queues. The calling process executes the rest itself.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.msgpack import Decoder, Encoder, Ext

from queues import errors
from queues.context import StoreContext
from queues.errors import StoreError, Worded, Words
from queues.items.stored_item import StoredItem
from queues.kv.port import Refused, Server, Ticket
from queues.model.config import Config
from queues.model.item import Item, packed, unpacked
from queues.operations.open_queue import OpenQueue
from queues.operations.pop import LeaseRequest, PopRequest
from queues.operations.push import PushManyRequest, PushRequest
from queues.operations.settle import AckRequest, ExtendRequest, LeaseKey
from queues.serving.batch import Batch

log = logging.getLogger("queues.operations")

#: The requests that are sent.
Sent = PushRequest | PushManyRequest | PopRequest | LeaseRequest | AckRequest | ExtendRequest
_KINDS = frozenset({PushRequest, PushManyRequest, PopRequest, LeaseRequest, AckRequest, ExtendRequest})
#: Of whole numbers beyond 64 bits.
_LARGE = 1
#: Bytes of an item, about, at least.
_LEAST = 200
#: Queues that are kept open for other processes.
_MOST_QUEUES = 10_000


class _Message(msgspec.Struct, array_like=True, gc=False):
    requests: list[Sent]
    #: The names of queues that the receiver may not know, by id.
    names: dict[int, str]


def _ext(code: int, data: memoryview) -> object:
    return int.from_bytes(data, "big", signed=True)


_encode, _decode = Encoder().encode, Decoder(ext_hook=_ext).decode
_read_message = Decoder(_Message).decode


class RequestWire:
    """Packs requests and answers of one store, and finds what executes the requests of other processes."""

    def __init__(self, context: Callable[[], StoreContext], root: bytes) -> None:
        #: What identifies this store among those in the same file.
        self.root = root
        self._context = context
        self._queues: dict[int, OpenQueue] = {}

    def weight(self, request: Any) -> int:
        """Return about how many bytes a request and its answer have; 0 where no other process can execute it."""
        kind = type(request)
        if kind is PushRequest:
            return len(request.value) + _LEAST
        if kind is PushManyRequest:
            return 0 if request.due_ms else sum(len(value) + _LEAST for value, _ in request.values) + _LEAST
        return (request.n if kind in (PopRequest, LeaseRequest) else 1) * _LEAST if kind in _KINDS else 0

    def pack(self, tickets: Sequence[Ticket]) -> bytes | None:
        """Return these requests as bytes; None when one of them cannot be sent."""
        names = {ticket.request.queue_id: _queue(ticket).config.name for ticket in tickets}
        try:
            return _encode(_Message([ticket.request for ticket in tickets], names))
        except (OverflowError, ValueError, TypeError):  # a priority beyond 64 bits, text that is no Unicode
            return None

    def unpack(self, data: bytes | memoryview) -> list[tuple[Server[Any, Any], Any] | None]:
        """Return what executes each request, and the request; None for one of a queue that is not there."""
        message = _read_message(data)
        return [self._served(request, message.names) for request in message.requests]

    def pack_answer(self, ticket: Ticket) -> bytes:
        """Return the answer or the error of a request as bytes."""
        if ticket.error is not None:
            return _encode((False, _pack_error(ticket.error)))
        pack = _PACKS[type(ticket.request)]
        try:
            return _encode((True, pack(ticket.answer)))
        except OverflowError:
            return _encode((True, _with_large(pack(ticket.answer))))

    def unpack_answer(self, ticket: Ticket, data: bytes) -> Any:
        """Return the answer of a request, or its `Refused` error."""
        done, answer = _decode(data)
        return _UNPACKS[type(ticket.request)](ticket, answer) if done else Refused(_unpack_error(answer))

    def _served(self, request: Sent, names: Mapping[int, str]) -> tuple[Server[Any, Any], Any] | None:
        queue = self._queues.get(request.queue_id)
        if queue is None:
            try:
                queue = self._open(request.queue_id, names[request.queue_id])
            except (Worded, KeyError):
                return None
        return None if queue.foreign is not None else (queue.batch(type(request)), request)

    def _open(self, queue_id: int, name: str) -> OpenQueue:
        context = self._context()
        record = context.kv.read(lambda tr: tr.get(context.keyspace.configs.key(queue_id)).wait())
        if len(self._queues) >= _MOST_QUEUES:
            self._queues.clear()
        queue = self._queues[queue_id] = OpenQueue(context, Config.of(name, record))
        return queue


def _queue(ticket: Ticket) -> OpenQueue:
    queue: OpenQueue = cast(Batch, ticket.server).queue
    return queue


# Answers


def _pushed(ticket: Ticket, rows: Any) -> Item:
    request: PushRequest = ticket.request
    return unpacked([request.value], rows, _queue(ticket).config.values)[0]


def _pushed_many(ticket: Ticket, rows: Any) -> list[Item]:
    request: PushManyRequest = ticket.request
    return unpacked([value for value, _ in request.values], rows, _queue(ticket).config.values)


def _popped(ticket: Ticket, answer: Any) -> list[Item]:
    values, rows = answer
    return unpacked(values, rows, _queue(ticket).config.values)


#: How answers are packed: pushed values are known to the caller.
_PACKS: dict[type, Callable[[Any], Any]] = {
    PushRequest: lambda item: packed([item]),
    PushManyRequest: packed,
    PopRequest: lambda items: ([item.raw for item in items], packed(items)),
    LeaseRequest: lambda leased: leased,
    AckRequest: lambda stale: stale,
    ExtendRequest: lambda leased: leased,
}
_UNPACKS: dict[type, Callable[[Ticket, Any], Any]] = {
    PushRequest: _pushed,
    PushManyRequest: _pushed_many,
    PopRequest: _popped,
    LeaseRequest: lambda _, answer: msgspec.convert(answer, list[StoredItem]),
    AckRequest: lambda _, answer: msgspec.convert(answer, list[LeaseKey]),
    ExtendRequest: lambda _, answer: msgspec.convert(answer, StoredItem),
}


def _with_large(answer: Any) -> Any:
    """Return an answer with whole numbers beyond 64 bits in a form that can be packed."""
    if isinstance(answer, list | tuple):
        return [_with_large(part) for part in answer]
    if isinstance(answer, int) and answer.bit_length() > 63:
        return Ext(_LARGE, answer.to_bytes(answer.bit_length() // 8 + 1, "big", signed=True))
    return answer


# Errors


def _pack_error(error: BaseException) -> Any:
    known = isinstance(error, Worded) and getattr(errors, type(error).__name__, None) is type(error)
    if not known:
        log.warning("A request of another process failed", exc_info=error)
        error = StoreError("The process that hosts the store failed: {error}", error=f"{type(error).__name__}: {error}")
    fields = {name: {"words": _pack_words(v)} if isinstance(v, Words) else v for name, v in vars(error).items()}
    return type(error).__name__, _pack_words(cast(Worded, error).words), fields


def _unpack_error(packed_error: Any) -> Worded:
    name, words, fields = packed_error
    kind: type[Worded] = getattr(errors, name, StoreError)
    error = kind.__new__(kind)
    error.args = (_unpack_words(words),)
    vars(error).update({name: _unpack_field(value) for name, value in fields.items()})
    return error


def _unpack_field(value: Any) -> Any:
    if isinstance(value, dict):
        return _unpack_words(value["words"])
    return tuple(value) if isinstance(value, list) else value


def _pack_words(words: Words) -> Any:
    values = {name: _pack_words(value) if isinstance(value, Words) else value for name, value in words.values.items()}
    return str(words), words.template, values, words.stops


def _unpack_words(words: Any) -> Words:
    text, template, values, stops = words
    made = Words(text)
    made.template = template
    made.values = {name: _unpack_words(value) if isinstance(value, list) else value for name, value in values.items()}
    made.stops = stops
    return made
