"""The election of the host, within a commit.

A process that finds the host gone writes its own name into the host's record; a host that has too much to do writes
that there is none. Both hold once the transaction is committed.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from queues.kv.embedded.failures import is_interrupt
from queues.kv.embedded.host import HOST, PROTOCOL, SOCKET, Host, HostRecord, Request, encode, forget_old
from queues.kv.embedded.transaction import Batch
from queues.kv.port import Ticket, Wire

log = logging.getLogger("queues.kv")

#: Seconds before another try to connect to a host, or to be one, where that was not possible.
AGAIN = 0.2
#: Seconds for which a process that left the hosting does not take it again.
_REST = 10.0
#: What is stored where no process can be the host.
_NONE = encode(HostRecord(PROTOCOL, ""))


class HostElection:
    """One process's part in it.

    Any thread may set `gone` and `try_at`; the rest is for the one that executes a batch.
    """

    def __init__(
        self,
        folder: Path,
        wires: dict[bytes, list[Wire]],
        *,
        arrive: Callable[[Sequence[Ticket]], None],
        attend: Callable[[Host | None], None],
        leave: Callable[[], None],
    ) -> None:
        #: There while this process hosts.
        self.host: Host | None = None
        #: Its record, where the store must have that and requests of this process need nothing else here; or nothing.
        self.settled = b""
        #: The record that names this process, while it hosts or begins to: it does not connect to itself.
        self.own = b""
        #: The record of a host that is gone, or (None,) for none: the next commit makes this process the host.
        self.gone: tuple[bytes | None] | None = None
        #: No host is looked for before this time.
        self.try_at = 0.0
        self._folder, self._wires = folder, wires
        #: Where requests of other processes go; has the helper thread listen to a host; closes connections to the last.
        self._arrive, self._attend, self._leave = arrive, attend, leave
        self._candidate: Host | None = None
        #: The next commit leaves the hosting to another process.
        self._leaves = False
        #: This process was the host once, so that old requests of other ones may be left.
        self._retired = False

    def begin(self, batch: Batch, tickets: list[Ticket]) -> list[Ticket]:
        """Return what is left to be executed, at the beginning of a commit.

        What is in doubt is looked for, and this process becomes the host where there is none. All of it holds once
        `committed` is called, and is done again in the next commit otherwise.
        """
        host = self.host
        if host is not None and not host.holds(batch.txn):
            self._retire()
        doubtful = [ticket for ticket in tickets if ticket.doubt is not None]
        if doubtful or self.gone is not None:
            gone = set(self.gone or ())
            for ticket in doubtful:
                connection, at = ticket.doubt
                connection.settle(batch.txn, at, ticket)
                if ticket.answered:
                    ticket.doubt = None
                else:
                    gone.add(connection.record)
            if batch.txn.get(HOST) in gone:  # but a host that was late may go on
                self.settled = b""
                self._claim(batch)
        elif host is not None and tickets and type(tickets[0]) is Request and host.is_busy():
            self._leaves, self.settled = True, b""
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
            self.try_at = time.monotonic() + _REST
        if self.gone is None and self._candidate is None:
            return
        self._leave()
        candidate, self._candidate = self._candidate, None
        if candidate is not None:
            try:
                self._attend(candidate)
                self.host = candidate
                self.settled = b"" if self._retired else candidate.record
            except BaseException as error:
                candidate.close()
                self.own, self.try_at = b"", time.monotonic() + AGAIN
                if type(error) is not RuntimeError and is_interrupt(error):
                    raise
                # no thread can be started: each process executes its own requests
                log.info("This process cannot host the store %s: %s", self._folder, error)
        self.gone = None

    def failed(self) -> None:
        """Note that nothing was committed."""
        self._leaves = False
        candidate, self._candidate = self._candidate, None
        if candidate is not None:
            candidate.close()
            self.own = b""

    def _claim(self, batch: Batch) -> None:
        self.failed()
        record = _NONE
        try:
            self._candidate = Host(self._folder, self._wires, self._arrive)
            record = self.own = self._candidate.record
        except OSError as error:  # no descriptor is left, or the file system has no sockets
            log.info("This process cannot host the store %s: %s", self._folder, error)
            self.try_at = time.monotonic() + AGAIN
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
        self.host, self.settled = None, b""
        self._attend(None)

    def abandon(self) -> None:
        """Close the descriptors, in a forked child, where they are copies."""
        for host in (self.host, self._candidate):
            if host is not None:
                host.abandon()
        self.host = self._candidate = None
        self.settled = b""
