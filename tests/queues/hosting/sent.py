"""A request that the host of a store executes, and whose reply its caller does not read."""

import select
from typing import Any

import msgspec

from queues import Store
from queues.kv.embedded.host import HOST, HostRecord
from queues.kv.embedded.host_client import Connection
from queues.kv.port import Ticket


class Sent:
    """A request by a connection of its own: the reply stays in its socket, or in the host."""

    def __init__(self, store: Store, queue: Any, request: Any, *, await_reply: bool = True) -> None:
        self._engine: Any = store.context.kv.engine
        self._wire = store.context.wire
        record = self._engine.read_own(HOST)
        host = msgspec.msgpack.decode(record, type=HostRecord)
        self._connection = Connection(self._engine.environment.folder, record, host)
        self._ticket = Ticket(queue.opened.batch(type(request)), request, None)
        packed = self._wire.pack([self._ticket])
        assert packed is not None
        self._connection.send(self._wire.root, packed, idle=False)
        if await_reply:
            select.select([self._connection.socket], [], [])

    def answer(self) -> Any:
        """Return the answer, now that the host is gone or was silent."""
        self._engine.sharing.doubt(self._connection, [self._ticket])
        answer = self._engine.combiner.serve(self._ticket.server, self._ticket.request, self._ticket.doubt)
        self.leave()
        return answer

    def leave(self) -> None:
        """End the connection, as the end of its process does."""
        self._connection.close()
