"""The host of a store: executes requests of other processes with its own, in one commit for all.

It is the bell of the combiner's helper thread: that thread sleeps until a thread of this process rings, or until
another process sends requests. A commit that holds requests of other processes also holds, in one record, the answers
that no socket has taken yet. Answers that no socket takes until the next such commit move to a record of their own: so
a process that does not read them makes no commit larger but that one. If the host dies, each caller first reads what is
left in its socket, then these records.
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

from queues.kv.boottime import boottime
from queues.kv.descriptor import Descriptor
from queues.kv.embedded import file_permissions
from queues.kv.embedded.transaction import Batch
from queues.kv.errors import OutcomeUnknown, StoreError, StoreUnavailable
from queues.kv.port import Ticket, Wire

log = logging.getLogger("queues.kv")

#: What other processes find the host by: the protocol and the name of its socket.
HOST = b"\xff\x02host"
#: Before the name of a host's socket: the answers of its last commit that no socket had taken before. With the id of a
#: connection and the number of its message behind the name: answers of an earlier commit.
ANSWERS = b"\xff\x02answer/"
#: How the names of sockets begin.
SOCKET = "host-"
#: The protocol of messages and answers. A host of an older one is replaced, and then refused by its own release.
PROTOCOL = 3
#: A message: bytes of the packed requests, its number, bytes of the wire's root, whether its process could host; then
#: root and requests. A reply: bytes, number.
MESSAGE, REPLY = struct.Struct("<IQH?"), struct.Struct("<IQ")
#: What a connection begins with: a magic number, and its id.
MAGIC, ID_BYTES = b"pqhost3\0", 16
#: Bytes of one message, at most.
MAX_MESSAGE = 64 << 20
#: Before the answers in their record: the protocol, and the seconds since the machine's start, which no change of the
#: clock moves.
_HEAD = struct.Struct(">QQ")
#: Seconds over which the load is measured, and the share of a processor beside hosting from which a host is busy: then
#: other threads of its process hold the interpreter when requests come.
_MEASURE, BUSY = 1.0, 0.5
#: Seconds for which the answers of a host that is gone are kept.
_KEPT = 3_600
CHUNK = 1 << 18
_BACKLOG = 128
_ONE = (1).to_bytes(8, "little")

Answers = list[bytes | None]
encode = msgspec.msgpack.encode
decode = msgspec.msgpack.Decoder(Answers).decode
#: By the id of a connection: the number of its message, and the packed answers.
_decode_answers = msgspec.msgpack.Decoder(dict[bytes, tuple[int, bytes]]).decode


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

    remote = True
    at: int
    host: Host
    #: The answer or error that was packed last.
    packed: object


class _Message:
    """Requests that another process sent together: where their answers land. The reply is sent when it is whole."""

    __slots__ = ("_wire", "answers", "connection", "left", "number", "requests", "stored")

    def __init__(self, connection: _Connection, number: int, wire: Wire, data: bytes | memoryview) -> None:
        self.connection = connection
        self.number = number
        self._wire = wire
        executed = wire.unpack(data)
        #: None for what cannot be executed here.
        self.answers: Answers = [None] * len(executed)
        self.requests: list[Request] = []
        for at, found in enumerate(executed):
            if found is not None:
                request = Request(*found, self)
                request.at, request.host, request.packed = at, connection.host, self
                self.requests.append(request)
        self.left = len(self.requests)
        #: Where the answers are stored by themselves; empty as long as they are not.
        self.stored = b""

    def land(self, tickets: Sequence[Request]) -> None:
        """Take answers; reply once all are here."""
        if self.connection.host.retired:
            return
        for ticket in tickets:
            self.note(ticket)
        self.left -= len(tickets)
        if not self.left:
            self.connection.reply(self)

    def note(self, ticket: Request) -> None:
        """Pack an answer, unless it was packed for the commit."""
        said = ticket.answer if ticket.error is None else ticket.error
        if said is not ticket.packed:
            ticket.packed = said
            if isinstance(said, StoreUnavailable):  # to this process, and nothing was written: the other one tries
                self.answers[ticket.at] = None
                return
            try:
                self.answers[ticket.at] = self._wire.pack_answer(ticket)
            except Exception:  # it is executed: nothing else may be said
                log.exception("An answer for another process could not be packed")
                ticket.error = OutcomeUnknown("The request was executed, but its answer could not be sent.")
                self.answers[ticket.at] = self._wire.pack_answer(ticket)

    def forget(self, executed: Collection[Ticket]) -> None:
        """Take back answers that were packed for a commit that failed."""
        for request in self.requests:
            if not request.answered and request not in executed:
                self.answers[request.at], request.packed = None, self


class _Connection:
    """A connection of another process: one message at a time, and the reply to it."""

    def __init__(self, host: Host, connection: socket.socket) -> None:
        self.host = host
        self.connection = connection
        self.id = b""
        #: What came of a message that is not whole.
        self._received = bytearray()
        #: The rest of the reply, which the socket has not taken yet.
        self.unsent = b""
        #: Its process could host, as it said last.
        self.idle = False
        #: The last one, until its reply is sent.
        self.message: _Message | None = None

    def receive(self, buffer: memoryview) -> bool:
        """Take what has come. False when the process is gone or does not speak the protocol."""
        try:
            size = self.connection.recv_into(buffer)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not size:
            return False
        if self.id and not self._received:
            return self._parse(buffer[:size])
        self._received += buffer[:size]
        if not self.id:
            if len(self._received) < len(MAGIC) + ID_BYTES:
                return True
            if not self._received.startswith(MAGIC):
                return False
            self.id = bytes(self._received[len(MAGIC) : len(MAGIC) + ID_BYTES])
            del self._received[: len(MAGIC) + ID_BYTES]
        received, self._received = self._received, bytearray()
        with memoryview(received) as data:
            return self._parse(data)

    def _parse(self, data: memoryview) -> bool:
        """Have the requests of a whole message executed; keep what is not whole."""
        if len(data) < MESSAGE.size:
            self._received += data
            return True
        size, number, root_size, self.idle = MESSAGE.unpack_from(data)
        begin, end = MESSAGE.size + root_size, MESSAGE.size + root_size + size
        if size > MAX_MESSAGE or self.message is not None or len(data) > end:  # the next one follows the reply
            return False
        if len(data) < end:
            self._received += data
            return True
        wires = self.host.wires.get(bytes(data[MESSAGE.size : begin]))
        if not wires:
            self._send(number, encode([]))
            return True
        try:
            message = self.message = _Message(self, number, wires[-1], data[begin:end])
        except (msgspec.MsgspecError, StoreError) as error:
            log.warning("Requests of another process could not be read: %s", error)
            return False
        if message.requests:
            self.host.arrive(message.requests)
        else:
            self.reply(message)
        return True

    def reply(self, message: _Message) -> None:
        """Send the answers."""
        self._send(message.number, encode(message.answers))

    def _send(self, number: int, answers: bytes) -> None:
        """Send a reply, the rest later if the socket does not take all of it now."""
        self.unsent = REPLY.pack(len(answers), number) + answers
        self.flush()
        if self.unsent:
            self.host.await_room(self, wait=True)

    def flush(self) -> None:
        """Send what is left."""
        try:
            self.unsent = self.unsent[self.connection.send(self.unsent) :]
        except BlockingIOError:
            return
        except OSError:  # it is gone, as its connection will say
            self.unsent = b""
        if not self.unsent:
            self.forget()
            self.message = None

    def forget(self) -> None:
        """Keep the answers no longer: they were sent, or the process is gone, perhaps before they are there."""
        if (message := self.message) is not None:
            self.host.unsent.pop(message, None)
            if message.stored:
                self.host.outdated.append(message.stored)


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
        #: Messages with answers of a commit, as long as their sockets have not taken the whole reply.
        self.unsent: dict[_Message, None] = {}
        #: Records of answers that are not needed any more, until they were seen to be gone: a commit may fail.
        self.outdated: list[bytes] = []
        #: By their descriptors.
        self.connections: dict[int, _Connection] = {}
        #: A commit may have something to note.
        self.must_note = False
        self._buffer = memoryview(bytearray(CHUNK))
        self._full: set[int] = set()
        self.path = folder / f"{SOCKET}{os.urandom(6).hex()}"
        self._closed = False
        #: Set once it is closed.
        self.ended = threading.Event()
        #: Another process has taken over.
        self.retired = False
        self._load = Load()
        #: When records of answers that no caller needs any more are removed next.
        self._clean_at = boottime() + _KEPT
        #: What is stored while this process hosts.
        self.record = encode(HostRecord(PROTOCOL, self.path.name))
        #: Where the answers of its commits are stored.
        self.answers = answers_key(self.path.name)
        #: Never closed before the last thread that rings has forgotten it: another file may get its number.
        self._event = Descriptor(os.eventfd(0))
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
            elif (connection := self.connections.get(descriptor)) is not None:
                if descriptor in self._full:
                    connection.flush()
                    if not connection.unsent:
                        self.await_room(connection, wait=False)
                elif connection.receive(self._buffer):
                    happened = True
                else:
                    self._drop(connection)
        self.must_note = bool(self.connections or self.outdated) or boottime() > self._clean_at
        return happened

    # Commits

    def holds(self, txn: lmdb.Transaction[bytes]) -> bool:
        """Say whether this process is still the host."""
        return txn.get(HOST) == self.record

    def note(self, batch: Batch, done: Sequence[Ticket]) -> None:
        """Write answers into the commit of their requests.

        They are those of all messages whose replies no socket has taken as a whole: a caller finds its answer in its
        socket or here. Commits without requests of other processes leave the record as it is.
        """
        for key in tuple(self.outdated):
            if not batch.remove(key):
                self.outdated.remove(key)
        if boottime() > self._clean_at:
            self._clean_at = boottime() + _KEPT
            forget_old(batch)
        executed = [ticket for ticket in done if type(ticket) is Request]
        if not executed:
            return
        for ticket in executed:
            message = ticket.landing
            assert isinstance(message, _Message)
            message.note(ticket)
            self.unsent[message] = None
        here = set(executed)
        answers = {}
        for message in self.unsent:
            connection, number = message.connection.id, message.number
            if message.left:
                message.forget(here)
                answers[connection] = number, encode(message.answers)
                continue
            message.stored = own_answers_key(self.answers, connection, number)  # of an earlier commit
            if not batch.cursor.set_key(message.stored):
                batch.put(message.stored, answers_record({connection: (number, encode(message.answers))}))
        batch.put(self.answers, answers_record(answers))

    def is_busy(self) -> bool:
        """Say whether this process does much beside hosting while another one that is connected does not.

        To be asked by the helper thread.
        """
        busy = self._load.share(time.thread_time()) > BUSY
        return busy and any(connection.idle for connection in self.connections.values())

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
        for connection in self.connections.values():
            connection.connection.close()
        self.connections.clear()
        self._listener.close()
        self._epoll.close()
        spare, self._spare = self._spare, None
        if spare is not None:
            os.close(spare)

    def await_room(self, connection: _Connection, *, wait: bool) -> None:
        """Have the rest of a reply sent once its socket has room; or no longer."""
        descriptor = connection.connection.fileno()
        if descriptor >= 0:
            self._full = self._full | {descriptor} if wait else self._full - {descriptor}
            self._epoll.modify(descriptor, select.EPOLLOUT if wait else select.EPOLLIN)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            log.info("A process could not be connected: %s", error)
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._refuse()
            return
        connection.setblocking(False)
        self.connections[connection.fileno()] = _Connection(self, connection)
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

    def _drop(self, connection: _Connection) -> None:
        """Forget a connection that is gone: its caller has its answer, or is gone too."""
        descriptor = connection.connection.fileno()
        del self.connections[descriptor]
        self._full.discard(descriptor)
        connection.connection.close()
        connection.forget()


def answers_key(name: str) -> bytes:
    """Return the key of the answers of the host whose socket has this name."""
    return ANSWERS + name.encode()


def own_answers_key(answers: bytes, connection: bytes, number: int) -> bytes:
    """Return the key of answers that have a record of their own, from that of the host's answers."""
    return answers + b"/" + connection + number.to_bytes(8, "big")


def answers_record(answers: Mapping[bytes, tuple[int, bytes]]) -> bytes:
    """Return what is stored: by connection, its message's number and the packed answers."""
    return _HEAD.pack(PROTOCOL, int(boottime())) + encode(answers)


def read_answers(record: bytes | None, connection: bytes, number: int) -> Answers:
    """Return the stored answers to a message of a connection. None if there are not any."""
    if record is None:
        return []
    found, answers = _decode_answers(record[_HEAD.size :]).get(connection, (0, b""))
    return decode(answers) if found == number else []


def forget_old(batch: Batch) -> None:
    """Remove answers of hosts that ended an hour ago, or before the machine's start."""
    now, found = boottime(), batch.cursor.set_range(ANSWERS)
    answers = list(takewhile(lambda pair: pair[0].startswith(ANSWERS), batch.cursor.iternext())) if found else []
    for key, record in answers:
        if not now - _KEPT <= _HEAD.unpack_from(record)[1] <= now:
            batch.remove(key)


@contextlib.contextmanager
def address_of(path: Path) -> Any:
    """Return an address of a socket's file that is short enough, whatever its folder is called."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
