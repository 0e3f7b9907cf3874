"""The host of a store: executes requests of other processes with its own, in one commit for all.

It is the bell of the combiner's helper thread: that thread sleeps until a thread of this process rings, or until
another process sends requests. Every commit that holds requests of other processes also holds their answers. If the
host dies, the other processes read there what was done.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import lmdb
import msgspec

from queues.kv.bells import EventDescriptor
from queues.kv.boottime import boottime
from queues.kv.embedded import file_permissions
from queues.kv.embedded.transaction import Batch
from queues.kv.errors import OutcomeUnknown, StoreError, StoreUnavailable
from queues.kv.port import Ticket, Wire

log = logging.getLogger("queues.kv")

#: What other processes find the host by: the protocol and the name of its socket.
HOST = b"\xff\x02host"
#: Before the id of a process: its message that was executed last, and the answers.
ANSWER = b"\xff\x02answer/"
#: How the names of sockets begin.
SOCKET = "host-"
#: The protocol of messages; an older one is refused.
PROTOCOL = 1
#: A message: bytes of the packed requests, its number, bytes of the wire's root, whether its process could host; then
#: root and requests. A reply: bytes, number.
MESSAGE, REPLY = struct.Struct("<IQH?"), struct.Struct("<IQ")
#: What a process begins with: a magic number, and its id.
MAGIC, ID_BYTES = b"pqhost1\0", 16
#: Bytes of one message, at most.
MAX_MESSAGE = 64 << 20
#: Of an answer record: the message's number, and the seconds since the machine's start, as no change of the clock moves
#: these.
_ANSWER = struct.Struct(">QQ")
#: Seconds over which the load is measured, and the share of a processor beside hosting from which a host is busy: then
#: other threads of its process hold the interpreter when requests come.
_MEASURE, _BUSY = 1.0, 0.5
#: Seconds for which an answer is kept that no connection holds.
_KEPT = 3_600
CHUNK = 1 << 18
_BACKLOG = 128
_ONE = (1).to_bytes(8, "little")

Answers = list[bytes | None]
encode = msgspec.msgpack.encode
decode: Callable[[bytes], Answers] = msgspec.msgpack.Decoder(Answers).decode


class HostRecord(msgspec.Struct, array_like=True, frozen=True):
    """What is stored under `HOST`."""

    protocol: int
    #: The file name of its socket in the store's folder.
    socket: str


class Load:
    """How much of a processor this process uses, measured once a second."""

    def __init__(self) -> None:
        self._at, self._used, self._share = time.monotonic(), time.process_time(), 0.0

    def share(self, own: float = 0.0) -> float:
        """Return the share of a processor in the last second; `own` are seconds of the processor to leave out."""
        now = time.monotonic()
        if now - self._at >= _MEASURE:
            used = time.process_time() - own
            self._share, self._at, self._used = (used - self._used) / (now - self._at), now, used
        return self._share


class Request(Ticket):
    """A request of another process: its host, and its place in the message."""

    __slots__ = ("at", "host", "packed")

    at: int
    host: Host
    #: The answer or error that was packed last.
    packed: object


class _Message:
    """Requests that another process sent together: where their answers land. The reply is sent when it is whole."""

    __slots__ = ("answers", "left", "number", "process", "requests", "wire")

    def __init__(self, process: _Process, number: int, wire: Wire, data: bytes) -> None:
        self.process = process
        self.number = number
        self.wire = wire
        executed = wire.unpack(data)
        #: None for what cannot be executed here.
        self.answers: Answers = [None] * len(executed)
        self.requests: list[Request] = []
        for at, found in enumerate(executed):
            if found is not None:
                request = Request(*found, self)
                request.at, request.host, request.packed = at, process.host, self
                self.requests.append(request)
        self.left = len(self.requests)

    def land(self, tickets: Sequence[Request]) -> None:
        """Take answers; reply once all are here."""
        if self.process.host.retired:
            return
        for ticket in tickets:
            self.note(ticket)
        self.left -= len(tickets)
        if not self.left:
            self.reply()

    def note(self, ticket: Request) -> None:
        """Pack an answer, unless it was packed for the commit."""
        said = ticket.answer if ticket.error is None else ticket.error
        if said is not ticket.packed:
            ticket.packed = said
            if isinstance(said, StoreUnavailable):  # to this process, and nothing was written: the other one tries
                self.answers[ticket.at] = None
                return
            try:
                self.answers[ticket.at] = self.wire.pack_answer(ticket)
            except Exception:  # it is executed: nothing else may be said
                log.exception("An answer for another process could not be packed")
                ticket.error = OutcomeUnknown("The request was executed, but its answer could not be sent.")
                self.answers[ticket.at] = self.wire.pack_answer(ticket)

    def forget(self, executed: Collection[Ticket]) -> None:
        """Take back answers that were packed for a commit that failed."""
        for request in self.requests:
            if not request.answered and request not in executed:
                self.answers[request.at], request.packed = None, self

    def reply(self) -> None:
        """Send the answers."""
        self.process.send(self.number, encode(self.answers))


class _Process:
    """The connection of another process."""

    def __init__(self, host: Host, connection: socket.socket) -> None:
        self.host = host
        self.connection = connection
        self.id = b""
        self.received = bytearray()
        self.unsent = b""
        #: It could host, as it said last.
        self.idle = False
        self.message: _Message | None = None

    def receive(self) -> bool:
        """Take what has come; False when the process is gone or does not speak the protocol."""
        try:
            data = self.connection.recv(CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not data:
            return False
        self.received += data
        if not self.id:
            if len(self.received) < len(MAGIC) + ID_BYTES:
                return True
            if not self.received.startswith(MAGIC):
                return False
            self.id = bytes(self.received[len(MAGIC) : len(MAGIC) + ID_BYTES])
            del self.received[: len(MAGIC) + ID_BYTES]
            self.host.forgotten.discard(self.id)
        return self._parse()

    def _parse(self) -> bool:
        received = self.received
        while len(received) >= MESSAGE.size:
            size, number, root_size, self.idle = MESSAGE.unpack_from(received)
            if size > MAX_MESSAGE or (self.message is not None and self.message.left):
                return False
            begin, end = MESSAGE.size + root_size, MESSAGE.size + root_size + size
            if len(received) < end:
                return True
            wires = self.host.wires.get(bytes(received[MESSAGE.size : begin]))
            data = bytes(received[begin:end])
            del received[:end]
            if not wires:
                self.send(number, encode([]))
                continue
            try:
                message = _Message(self, number, wires[-1], data)
            except (msgspec.MsgspecError, StoreError) as error:
                log.warning("Requests of another process could not be read: %s", error)
                return False
            self.message = message
            if message.requests:
                self.host.arrive(message.requests)
            else:
                message.reply()
        return True

    def send(self, number: int, answers: bytes) -> None:
        """Send a reply, the rest later if the process does not take all of it now."""
        self.unsent += REPLY.pack(len(answers), number) + answers
        self.flush()

    def flush(self) -> None:
        """Send what is left."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.connection.send(self.unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # it is gone, as its connection will say
            self.unsent = b""
        self.host.await_room(self)


class Host:
    """What makes this process the host of a store: a socket that other processes connect to.

    Used by the helper thread of the combiner, but for `ring` and `close`.
    """

    def __init__(
        self, folder: Path, wires: Mapping[bytes, Sequence[Wire]], arrive: Callable[[Sequence[Ticket]], None]
    ) -> None:
        self.wires = wires
        #: Where requests of other processes go.
        self.arrive = arrive
        #: Processes that are gone: the next commit removes their answers. A living process keeps its connection until
        #: it has seen its answers, so none of these asks for them any more.
        self.forgotten: set[bytes] = set()
        self._processes: dict[int, _Process] = {}
        self._full: set[int] = set()
        self.path = folder / f"{SOCKET}{os.urandom(6).hex()}"
        self._closed = False
        #: Set once it is closed.
        self.ended = threading.Event()
        #: Another process has taken over.
        self.retired = False
        self._load = Load()
        #: What is stored while this process hosts.
        self.record = encode(HostRecord(PROTOCOL, self.path.name))
        #: Never closed before the last thread that rings has forgotten it: another file may get its number.
        self._event = EventDescriptor(os.eventfd(0))
        with contextlib.ExitStack() as opened:
            #: Given back for a moment where no descriptor is left, to refuse a connection.
            self._spare: int | None = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, self._spare)
            self._epoll = opened.enter_context(select.epoll())
            self._listener = opened.enter_context(
                socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            )
            with address_of(self.path) as address:
                self._listener.bind(address)
            opened.callback(self.path.unlink, missing_ok=True)
            self.path.chmod(file_permissions.file_mode(folder))
            self._listener.listen(_BACKLOG)
            self._epoll.register(self._event, select.EPOLLIN)
            self._epoll.register(self._listener, select.EPOLLIN)
            opened.pop_all()

    # The bell of the helper thread

    def ring(self) -> None:
        """Wake the thread that listens."""
        os.write(self._event, _ONE)

    def listen_for(self, seconds: float) -> bool:
        """Sleep until a thread rings or requests come, or for so many seconds; False when nothing happened."""
        happened = False
        for descriptor, _ in self._epoll.poll(seconds):
            if descriptor == self._event:
                os.read(self._event, len(_ONE))
                happened = True
            elif descriptor == self._listener.fileno():
                self._accept()
            elif (process := self._processes.get(descriptor)) is not None:
                if descriptor in self._full:
                    process.flush()
                elif process.receive():
                    happened = True
                else:
                    self._drop(process)
        return happened

    # Commits

    def holds(self, txn: lmdb.Transaction[bytes]) -> bool:
        """Say whether this process is still the host."""
        return txn.get(HOST) == self.record

    def note(self, batch: Batch, done: Sequence[Ticket]) -> None:
        """Write the answers of requests of other processes into their commit."""
        messages: dict[_Message, None] = {}
        for ticket in done:
            if type(ticket) is Request:
                message: _Message = ticket.landing  # type: ignore[assignment]
                message.note(ticket)
                messages[message] = None
        executed = set(done) if messages else set()
        for message in messages:
            message.forget(executed)
        for message in messages:
            batch.put(ANSWER + message.process.id, answer_record(message.number, encode(message.answers)))
        if messages:
            while self.forgotten:
                batch.remove(ANSWER + self.forgotten.pop())

    def is_busy(self) -> bool:
        """Say whether this process does much beside hosting while another one that is connected does not.

        To be asked by the helper thread.
        """
        busy = self._load.share(time.thread_time()) > _BUSY
        return busy and any(process.idle for process in self._processes.values())

    def close(self) -> None:
        """Close all connections; what was not replied to is found in the store. Idempotent."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.abandon()
        self.ended.set()

    def abandon(self) -> None:
        """Close the descriptors; in a forked child, where they are copies."""
        self._closed = True
        for process in self._processes.values():
            process.connection.close()
        self._processes.clear()
        self._listener.close()
        self._epoll.close()
        spare, self._spare = self._spare, None
        if spare is not None:
            os.close(spare)

    def await_room(self, process: _Process) -> None:
        """Have the rest of a reply sent once the process has taken what was sent."""
        descriptor = process.connection.fileno()
        if bool(process.unsent) != (descriptor in self._full) and descriptor >= 0:
            self._full ^= {descriptor}
            self._epoll.modify(descriptor, select.EPOLLOUT if process.unsent else select.EPOLLIN)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            log.info("A process could not be connected: %s", error)
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._refuse()
            return
        connection.setblocking(False)
        self._processes[connection.fileno()] = _Process(self, connection)
        self._epoll.register(connection, select.EPOLLIN)

    def _refuse(self) -> None:
        """Close the next connection where no descriptor is left: that process becomes the host."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        with contextlib.suppress(OSError):
            self._listener.accept()[0].close()
        try:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._epoll.unregister(self._listener)
            self._listener.close()

    def _drop(self, process: _Process) -> None:
        """Forget a process that is gone."""
        descriptor = process.connection.fileno()
        del self._processes[descriptor]
        self._full.discard(descriptor)
        process.connection.close()
        if process.id and all(other.id != process.id for other in self._processes.values()):
            self.forgotten.add(process.id)


def answer_record(number: int, answers: bytes) -> bytes:
    """Return what is stored under a process's `ANSWER`."""
    return _ANSWER.pack(number, int(boottime())) + answers


def read_answers(record: bytes | None, number: int) -> Answers:
    """Return the stored answers to a message; none if another message was executed last."""
    if record is None or _ANSWER.unpack_from(record)[0] != number:
        return []
    return decode(record[_ANSWER.size :])


def forget_old(batch: Batch) -> None:
    """Remove answers for which no process has asked in an hour, or that are from before the machine's start."""
    now, found = boottime(), batch.cursor.set_range(ANSWER)
    answers = list(takewhile(lambda pair: pair[0].startswith(ANSWER), batch.cursor.iternext())) if found else []
    for key, record in answers:
        if not now - _KEPT <= _ANSWER.unpack_from(record)[1] <= now:
            batch.remove(key)


@contextlib.contextmanager
def address_of(path: Path) -> Any:
    """Return an address of a socket's file that is short enough, whatever its folder is called."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
