"""Tasks: leased items on their way through a pool."""

from __future__ import annotations

from dataclasses import dataclass, field

from queues.operations.lease import Lease
from queues.queue import Queue
from queues.workers.worker import Handler


@dataclass(slots=True, kw_only=True, eq=False)
class Task:
    """A leased item on its way through a pool."""

    queue: Queue
    lease: Lease
    handler: Handler
    #: Its lease is being ended by us: that it is over is no news then.
    settling: bool = field(default=False)
    #: Its handler acknowledged it.
    completed: bool = field(default=False)
