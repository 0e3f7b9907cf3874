"""One process beside the host of the store: it sends its requests to the host, or becomes the host itself.

The host is named by a record in the store, which changes only in a write transaction. The first process that executes
a request and finds no living host writes its own name. A host commits requests of other processes only while the
record names it. If the host has died, or is silent, a process looks for its answers in a write transaction of its own
and becomes the host in the same one: what is not answered there is never executed by the old host.
"""

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from queues.kv.boottime import boottime
from queues.kv.embedded.host import (
    ANSWER,
    CHUNK,
    HOST,
    ID_BYTES,
    MAGIC,
    MESSAGE,
    PROTOCOL,
    REPLY,
    SOCKET,
    Answers,
    Host,
    HostRecord,
    Load,
    Request,
    address_of,
    decode,
    encode,
    forget_old,
    read_answers,
)
from queues.kv.embedded.transaction import Batch
from queues.kv.errors import OutcomeUnknown, StoreUnavailable
from queues.kv.port import Refused, Ticket, Wire

log = logging.getLogger("queues.kv")

#: Seconds without a reply after which a process looks for its answers in the store.
SILENCE = 1.0
#: Requests that are sent together, and their weight in bytes.
MOST_REQUESTS, MOST_BYTES = 200, 4_000_000
#: Seconds for which stored answers are trusted to be there: less than they are kept.
_TRUSTED = 1_800.0
#: Seconds before another try to connect to a host, or to be one, where that was not possible.
_AGAIN = 0.2
#: Seconds for which a process that left the hosting does not take it again, and the share of a processor up to which
#: a process offers to host.
_REST, _IDLE = 10.0, 0.5
#: Seconds that closing waits for the thread that hosts.
_PATIENCE = 2.0
#: What is stored where no process can be the host.
_NONE = encode(HostRecord(PROTOCOL, ""))
#: No process listens there.
_GONE = (ConnectionError, FileNotFoundError, NotADirectoryError, TimeoutError)
_decode_record = msgspec.msgpack.Decoder(HostRecord).decode


class Sharing:
    """One process's part in it. Used by the thread that executes a batch."""

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
        #: There while this process hosts.
        self.host: Host | None = None
        self._folder = folder
        #: Reads one key; where requests of other processes go; has the helper thread listen to a host.
        self._read, self._arrive, self._attend = read, arrive, attend
        self._able = _is_able()
        self._id = os.urandom(ID_BYTES)
        self._number = 0
        self._connection: socket.socket | None = None
        self._received = b""
        #: The record of the host that this process is connected to, or could not reach.
        self._record: bytes | None = None
        self._try_at = 0.0
        #: There is no host, or it is gone: the next commit makes this process the host.
        self._claims = False
        #: Requests that were sent to a host that is gone, and what carried them: perhaps it executed them. They are
        #: settled before the batch ends, as callers use their tickets again.
        self._doubtful: Sequence[Ticket] = ()
        self._carrier: Wire | None = None
        #: Of those, the places of what was found to be executed.
        self._settled: set[int] = set()
        self._sent_at = 0.0
        self._candidate: Host | None = None
        self._load = Load()
        #: The next commit leaves the hosting to another process.
        self._leaves = False
        #: This process was the host once, so that old requests of other ones may be left.
        self._retired = False

    # Sending

    def send(self, tickets: Sequence[Ticket]) -> bool:
        """Have the host execute what it can; False when this process executes all. Raises StoreUnavailable."""
        if self.host is not None or self._claims or not self._able:
            return False
        wire, sent = _sendable(tickets)
        if wire is None or not (self._connection is not None or self._connect()):
            return False
        packed = wire.pack(sent)
        if packed is None or self._connection is None:
            return False
        self._number += 1
        self._sent_at = boottime()
        idle = self._load.share() < _IDLE
        message = MESSAGE.pack(len(packed), self._number, len(wire.root), idle) + wire.root + packed
        try:
            self._received = b""
            self._connection.sendall(message)
            answers = self._receive(self._connection)
        except (OSError, EOFError) as error:
            log.info("The host of %s does not answer (%s)", self._folder, error)
            self._claims, self._doubtful, self._carrier = True, sent, wire
            return False
        except BaseException:  # a signal handler raised: the outcome is waited for
            try:
                _settle(wire, sent, self._receive(self._connection))
            except (OSError, EOFError):
                self._claims, self._doubtful, self._carrier = True, sent, wire
            raise
        _settle(wire, sent, answers)
        return True

    def _receive(self, connection: socket.socket) -> Answers:
        while True:
            chunk = connection.recv(CHUNK)
            if not chunk:
                raise EOFError("it is gone")
            data = self._received = self._received + chunk if self._received else chunk
            if len(data) < REPLY.size:
                continue
            size, number = REPLY.unpack_from(data)
            if len(data) < REPLY.size + size:
                continue
            if number != self._number:
                raise EOFError("it answers another message")
            return decode(data[REPLY.size :])

    def _connect(self) -> bool:
        """Find the host and connect to it; where there is none, the next commit makes this process the host."""
        now = time.monotonic()
        if now < self._try_at:
            return False
        self._record = self._read(HOST)
        if self._record is None:
            self._claims = True
            return False
        found = self._read_record(self._record)
        connection: socket.socket | None = None
        try:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(SILENCE)
            with address_of(self._folder / found.socket) as address:
                connection.connect(address)
            connection.sendall(MAGIC + self._id)
        except OSError as error:
            if connection is not None:
                connection.close()
            if isinstance(error, _GONE):
                self._claims = True
            else:  # another user's, or no descriptor is left: that host goes on, beside this process
                self._try_at = now + _AGAIN
            return False
        if found.protocol > PROTOCOL:
            connection.close()
            raise StoreUnavailable(
                "The store {path} is in use by a newer release of this program. Use that here, too.",
                path=str(self._folder),
            )
        self._connection = connection
        return True

    def _read_record(self, record: bytes) -> HostRecord:
        found = HostRecord(PROTOCOL, "")
        with contextlib.suppress(msgspec.MsgspecError):  # one that cannot be read is replaced
            found = _decode_record(record)
        return found

    def disconnect(self) -> None:
        """Leave the host; only after it is known what it executed, as it keeps the answers until then."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # Within a commit

    def begin(self, batch: Batch, tickets: list[Ticket]) -> list[Ticket]:
        """Return what is left to be executed, at the beginning of a commit.

        What is in doubt is looked for, and this process becomes the host where there is none. All of it holds once
        `committed` is called, and is done again in the next commit otherwise.
        """
        if self.host is not None and not self.host.holds(batch.txn):
            self._retire()
        if self._claims:
            doubtful = self._doubtful
            if doubtful and boottime() - self._sent_at > _TRUSTED:
                self.end_doubt()
            elif self._carrier is not None:
                answers = read_answers(batch.txn.get(ANSWER + self._id), self._number)
                self._settled |= _settle(self._carrier, doubtful, answers)
            late = bool(doubtful) and len(self._settled) == len(doubtful)  # but executed: it may go on
            if batch.txn.get(HOST) == self._record and not late:
                self._claim(batch)
        elif self.host is not None and tickets and type(tickets[0]) is Request and self.host.is_busy():
            self._leaves = True
            batch.put(HOST, _NONE)
        elif not self._retired:
            return tickets
        for ticket in tickets:
            if type(ticket) is Request and ticket.host is not self.host:  # its process asks elsewhere
                ticket.answered = True
        return [ticket for ticket in tickets if not ticket.answered]

    def committed(self) -> None:
        """Note that a commit is done, or that there was nothing to commit."""
        if self._leaves:
            self._leaves = False
            self._try_at = time.monotonic() + _REST
        if not self._claims:
            return
        self._doubtful, self._carrier, self._settled = (), None, set()
        self.disconnect()
        candidate, self._candidate = self._candidate, None
        if candidate is not None:
            try:
                self._attend(candidate)
                self.host = candidate
            except Exception as error:  # no thread can be started: each process executes its own requests
                log.info("This process cannot host the store %s: %s", self._folder, error)
                candidate.close()
                self._try_at = time.monotonic() + _AGAIN
        self._claims = False

    def end_doubt(self) -> bool:
        """Give up requests of which it cannot be told whether they were executed; say whether there were any."""
        unknown = [ticket for at, ticket in enumerate(self._doubtful) if at not in self._settled]
        self._doubtful, self._carrier, self._settled = (), None, set()
        for ticket in unknown:
            ticket.answer, ticket.answered = None, True
            ticket.error = OutcomeUnknown(
                "The process that hosts the store {path} is gone, and whether the request was executed could not be "
                "found out. Look before you repeat it.",
                path=str(self._folder),
            )
        return bool(unknown)

    def failed(self) -> None:
        """Note that nothing was committed."""
        self._leaves = False
        candidate, self._candidate = self._candidate, None
        if candidate is not None:
            candidate.close()

    def _claim(self, batch: Batch) -> None:
        self.failed()
        record = _NONE
        try:
            self._candidate = Host(self._folder, self.wires, self._arrive)
            record = self._candidate.record
        except OSError as error:  # no descriptor is left, or the file system has no sockets
            log.info("This process cannot host the store %s: %s", self._folder, error)
            self._try_at = time.monotonic() + _AGAIN
        batch.put(HOST, record)
        forget_old(batch)
        for left in self._folder.glob(f"{SOCKET}*"):  # by hosts that were killed
            if self._candidate is None or left != self._candidate.path:
                with contextlib.suppress(OSError):
                    left.unlink()

    def _retire(self) -> None:
        """Leave the hosting to the process that has taken it over."""
        if self.host is not None:
            self.host.retired = self._retired = True
        self.host = None
        self._attend(None)

    def close(self) -> None:
        """Leave the host, or stop hosting once the helper thread has ended."""
        self.disconnect()
        if self.host is not None:
            self.host.ended.wait(_PATIENCE)

    def abandon(self) -> None:
        """Close the descriptors, in a forked child, where they are copies."""
        self.disconnect()
        for host in (self.host, self._candidate):
            if host is not None:
                host.abandon()
        self.host = self._candidate = None
        self._able = False


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


def _settle(wire: Wire, tickets: Sequence[Ticket], answers: Answers) -> set[int]:
    """Note the answers that came, and return their places; what could not be executed elsewhere has none."""
    settled: set[int] = set()
    for at, (ticket, packed) in enumerate(zip(tickets, answers, strict=False)):
        if packed is not None:
            settled.add(at)
            answer = wire.unpack_answer(ticket, packed)
            if type(answer) is Refused:
                ticket.answer, ticket.error = None, answer.error
            else:
                ticket.answer, ticket.error = answer, None
            ticket.answered = True
    return settled
