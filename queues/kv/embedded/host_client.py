"""One process beside the host of the store: its callers send requests to the host, or it becomes the host itself.

A lone caller sends its request and waits for the reply itself. Where more threads call, and for coroutines, the
combiner sends what waits as one message.

The host is named by a record in the store, which changes only in a write transaction. The first process that executes
a request and finds no living host writes its own name. A host commits requests of other processes only while the
record names it. If the host has died, or is silent, a caller looks for its answer in a write transaction of its own:
first in its socket, then in the record of the host's last commit. Its process becomes the host in the same transaction:
what is not answered there is never executed by the old host.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

import lmdb
import msgspec

from queues.kv.boottime import boottime
from queues.kv.embedded.failures import is_interrupt
from queues.kv.embedded.host import (
    CHUNK,
    HOST,
    ID_BYTES,
    MAGIC,
    MESSAGE,
    PROTOCOL,
    REPLY,
    Answers,
    Host,
    HostRecord,
    Load,
    Request,
    address_of,
    answers_key,
    decode,
    own_answers_key,
    read_answers,
)
from queues.kv.embedded.host_election import AGAIN, HostElection
from queues.kv.errors import OutcomeUnknown, StoreUnavailable
from queues.kv.port import Refused, Server, Ticket, Wire

log = logging.getLogger("queues.kv")

#: Seconds without a reply after which a caller looks for its answer in the store.
SILENCE = 1.0
#: Requests that are sent together, and their weight in bytes.
MOST_REQUESTS, MOST_BYTES = 200, 4_000_000
#: Seconds for which stored answers are trusted to be there: less than they are kept.
_TRUSTED = 1_800.0
#: The share of a processor up to which a process offers to host.
_IDLE = 0.5
#: Seconds that closing waits for the thread that hosts, and for callers whose requests are under way.
_PATIENCE = 2.0
#: Bytes that are received at once, of most replies.
_SMALL = 4_096
#: No process listens there.
_GONE = (ConnectionError, FileNotFoundError, NotADirectoryError, TimeoutError)
#: `struct timeval`.
_SECONDS = struct.pack("@ll", int(SILENCE), 0)
_decode_record = msgspec.msgpack.Decoder(HostRecord).decode


class Connection:
    """A connection to the host, for one message at a time."""

    __slots__ = (
        "__weakref__",
        "_answers",
        "_folder",
        "_key",
        "_poll",
        "_received",
        "_sent_at",
        "id",
        "number",
        "record",
        "socket",
    )

    def __init__(self, folder: Path, record: bytes, host: HostRecord) -> None:
        """Connect. Raises OSError."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._folder = folder
        #: The host's record in the store, and the key of the answers of its last commit.
        self.record, self._key = record, answers_key(host.socket)
        self.id = os.urandom(ID_BYTES)
        #: Of the message that was sent last.
        self.number = 0
        self._sent_at = 0.0
        self._received = b""
        #: What was found of a message in doubt.
        self._answers: Answers = []
        # Not `settimeout`, which asks the system twice for each message.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _SECONDS)
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        #: Sleeps until there is something to receive. A thread that slept in `recv` would wake in vain, each time that
        #: the host takes a message.
        self._poll = poll.poll
        with address_of(folder / host.socket) as address:
            self.socket.connect(address)
        self.socket.sendall(MAGIC + self.id)

    def send(self, root: bytes, packed: bytes, *, idle: bool) -> None:
        """Send requests. Raises OSError: then the host has not got all of them, and executes none."""
        self.number += 1
        self._sent_at = boottime()
        self._received = b""
        self.socket.sendall(MESSAGE.pack(len(packed), self.number, len(root), idle) + root + packed)

    def receive(self, seconds: float = SILENCE) -> Answers:
        """Return the answers to what was sent, once they have come. Raises OSError, with a number: see `is_interrupt`.

        It waits so many seconds for the beginning, and for each part that follows.
        """
        while self._poll(seconds * 1_000):
            chunk = self.socket.recv(CHUNK if self._received else _SMALL)
            if not chunk:
                break
            data = self._received = self._received + chunk if self._received else chunk
            if len(data) >= REPLY.size:
                size, number = REPLY.unpack_from(data)
                if number != self.number:
                    break
                if len(data) >= REPLY.size + size:
                    return decode(memoryview(data)[REPLY.size :])
        else:
            raise TimeoutError(errno.ETIMEDOUT, "it is silent")
        raise ConnectionResetError(errno.ECONNRESET, "it is gone")

    def rest(self) -> Answers:
        """Return the answers that have come meanwhile, perhaps before the host's end. None if there are not all."""
        try:
            return self.receive(0.0)
        except OSError as error:
            if is_interrupt(error):
                raise
            return []

    def settle(self, txn: lmdb.Transaction[bytes], at: int, ticket: Ticket) -> None:
        """Note the answer to a request in doubt, if the host executed it.

        `at` is its place in the last message. Within a write transaction, so that the host does not commit meanwhile:
        each answer that is not in the record of its last commit is in the socket.
        """
        if not self._answers:
            self._answers = self.rest()
        # A reply is whole; what is stored may be a part, to which a late host adds between two transactions.
        stored = txn.get(own_answers_key(self._key, self.id, self.number)) or txn.get(self._key)
        answers = self._answers or read_answers(stored, self.id, self.number)
        assert ticket.server is not None
        assert ticket.server.wire is not None
        _settle(ticket.server.wire, [ticket], answers[at : at + 1])
        if not ticket.answered and boottime() - self._sent_at > _TRUSTED:
            self.give_up(ticket)

    def give_up(self, ticket: Ticket) -> None:
        """Answer that it is not known whether a request was executed."""
        ticket.answer, ticket.answered, ticket.doubt = None, True, None
        ticket.error = OutcomeUnknown(
            "The process that hosts the store {path} is gone, and whether the request was executed could not be "
            "found out. Look before you repeat it.",
            path=str(self._folder),
        )

    def close(self) -> None:
        """Leave the host. Only after it is known what it executed, as it keeps the answers until then."""
        self.socket.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # no descriptor was left for it
            self.socket.close()


class Sharing:
    """One process's part in it. `ask` is for all threads, the rest for the one that executes a batch."""

    def __init__(
        self,
        folder: Path,
        *,
        read: Callable[[bytes], bytes | None],
        arrive: Callable[[Sequence[Ticket]], None],
        attend: Callable[[Host | None], None],
    ) -> None:
        #: By the root of their store, the newest last.
        self.wires: dict[bytes, list[Wire]] = {}
        self.election = HostElection(folder, self.wires, arrive=arrive, attend=attend, leave=self._leave_spares)
        #: A request may be in doubt: that of one of these connections, which live as long as it is.
        self.doubted = False
        self._doubtful: WeakSet[Connection] = WeakSet()
        self._folder = folder
        self._read = read
        self._able = _is_able()
        #: Connections that no caller uses, and those that one does.
        self._spare: list[Connection] = []
        self._lent: set[Connection] = set()
        self._load = Load()

    # Sending

    def ask(self, server: Server[Any, Any], request: Any) -> Ticket | None:
        """Have the host execute a request of the calling thread.

        None where that cannot be, or another thread calls. What comes back may not be answered, perhaps as it is in
        doubt: then it is to be executed like all requests of this process. Raises StoreUnavailable.
        """
        wire = server.wire
        if wire is None or self._lent or self.election.gone is not None or not self._able:
            return None
        if not wire.weight(request):
            return None
        ticket = Ticket(server, request, None)
        self._deliver(wire, [ticket])
        return ticket

    def send(self, tickets: Sequence[Ticket]) -> bool:
        """Have the host execute what it can; False when this process executes all. Raises StoreUnavailable."""
        if self.election.host is not None or self.election.gone is not None or not self._able:
            return False
        if self.doubted and any(ticket.doubt is not None for ticket in tickets):
            return False
        wire, sent = _sendable(tickets)
        return wire is not None and self._deliver(wire, sent)

    def _deliver(self, wire: Wire, tickets: Sequence[Ticket]) -> bool:
        """Send a message and note the answers. False without any: there is no host, or the requests are in doubt."""
        packed = wire.pack(tickets)
        idle = self._load.share() < _IDLE
        while packed is not None:
            try:
                connection, known = self._spare.pop(), True
            except IndexError:
                found, known = self._connect(), False
                if found is None:
                    break
                connection = found
            self._lent.add(connection)
            sent = False
            try:
                connection.send(wire.root, packed, idle=idle)
                sent = True
                _settle(wire, tickets, connection.receive())
                if self._able:  # the store is not being closed
                    self._spare.append(connection)
                return True
            except BaseException as error:
                if not isinstance(error, OSError) or is_interrupt(error):
                    # A signal handler raised, perhaps after all was sent: the outcome is waited for.
                    try:
                        _settle(wire, tickets, connection.receive())
                    except OSError:
                        self.doubt(connection, tickets)
                    raise
                if sent:
                    log.info("The host of %s does not answer (%s)", self._folder, error)
                    self.doubt(connection, tickets)
                    break
                connection.close()
                log.info("The host of %s is gone (%s)", self._folder, error)
                if isinstance(error, BlockingIOError) or not known:  # it is suspended, or refuses this process
                    self.election.gone = (connection.record,)
                    break
            finally:
                self._lent.discard(connection)
        return False

    def doubt(self, connection: Connection, tickets: Sequence[Ticket]) -> None:
        """Note that a host may have executed what was sent: it is gone, or silent."""
        self._doubtful.add(connection)
        self.doubted = True
        for at, ticket in enumerate(tickets):
            ticket.doubt = connection, at
        self._leave_spares()

    def _leave_spares(self) -> None:
        while self._spare:
            with contextlib.suppress(IndexError):
                self._spare.pop().close()

    def _connect(self) -> Connection | None:
        """Find the host and connect to it. Where there is none, the next commit makes this process the host."""
        now = time.monotonic()
        if now < self.election.try_at:
            return None
        record = self._read(HOST)
        if record == self.election.own:  # another thread has just made it the host
            return None
        found = None if record is None else self._read_record(record)
        if record is None or found is None or found.protocol < PROTOCOL:
            self.election.gone = (record,)
            return None
        try:
            connection = Connection(self._folder, record, found)
        except OSError as error:
            if is_interrupt(error):
                raise
            if isinstance(error, _GONE):
                self.election.gone = (record,)
            else:  # another user's, or no descriptor is left: that host goes on, beside this process
                self.election.try_at = now + AGAIN
            return None
        if found.protocol > PROTOCOL:
            connection.close()
            raise StoreUnavailable(
                "The store {path} is in use by a newer release of this program. Use that here, too.",
                path=str(self._folder),
            )
        return connection

    def _read_record(self, record: bytes) -> HostRecord | None:
        with contextlib.suppress(msgspec.MsgspecError):  # one that cannot be read is replaced
            return _decode_record(record)
        return None

    def end_doubts(self, tickets: Sequence[Ticket], *, failed: bool = False) -> bool:
        """Give up requests in doubt whose commit failed. Say whether there were any."""
        doubtful = [ticket for ticket in tickets if ticket.doubt is not None and (failed or ticket.answered)]
        for ticket in doubtful:
            connection, _ = ticket.doubt
            connection.give_up(ticket)
        self.doubted = False  # first: another thread may be in doubt from now on
        if self._doubtful:
            self.doubted = True
        return bool(doubtful)

    def finish(self) -> None:
        """Wait for the requests that callers have sent. The next ones are executed, or refused, here."""
        self._able = False
        until = time.monotonic() + _PATIENCE
        while self._lent and time.monotonic() < until:
            time.sleep(0.001)

    def close(self) -> None:
        """Leave the host, or stop hosting once the helper thread has ended."""
        self._leave_spares()
        if self.election.host is not None:
            self.election.host.ended.wait(_PATIENCE)

    def abandon(self) -> None:
        """Close the descriptors, in a forked child, where they are copies."""
        self._able = False
        self._leave_spares()
        for connection in self._lent:
            connection.close()
        self._lent.clear()
        self.election.abandon()


def _is_able() -> bool:
    """Say whether this system and this process have what hosting needs."""
    own_threads = type(threading.Lock()).__module__ == "_thread"
    return own_threads and hasattr(select, "epoll") and hasattr(os, "eventfd") and Path("/proc/self/fd").exists()


def _sendable(tickets: Sequence[Ticket]) -> tuple[Wire | None, list[Ticket]]:
    """Return requests that go together, and what carries them."""
    wire: Wire | None = None
    sent: list[Ticket] = []
    room = MOST_BYTES
    for ticket in tickets:
        own = None if ticket.server is None or type(ticket) is Request else ticket.server.wire
        weight = 0 if own is None or (wire is not None and own is not wire) else own.weight(ticket.request)
        if weight:
            room -= weight
            if sent and (room < 0 or len(sent) == MOST_REQUESTS):
                break
            wire = own
            sent.append(ticket)
    return wire, sent


def _settle(wire: Wire, tickets: Sequence[Ticket], answers: Answers) -> None:
    """Note the answers that came; what could not be executed elsewhere has none."""
    for ticket, packed in zip(tickets, answers, strict=False):
        if packed is not None:
            answer = wire.unpack_answer(ticket, packed)
            if type(answer) is Refused:
                ticket.answer, ticket.error = None, answer.error
            else:
                ticket.answer, ticket.error = answer, None
            ticket.answered = True
