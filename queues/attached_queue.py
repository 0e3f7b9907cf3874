"""The facade of an attached queue: the verbs of `Queue`, and what only attached queues need."""

from __future__ import annotations

from collections.abc import Callable

from queues.context import StoreContext
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config
from queues.operations import attached
from queues.operations.attached import Chunk
from queues.operations.measure import depth_request
from queues.queue import Queue
from queues.status.status import Totals


class AttachedQueue(Queue):
    """A queue whose items lie in a subspace that other programs write by FoundationDB's recipes. Thread-safe."""

    def depth(self, state: str = "ready", *, tr: ReadTransaction | None = None) -> int:
        """Count the ready items: exact when nothing changes meanwhile. The cost grows with the depth.

        Alone it goes by many short reads; with `tr` it is one transaction's reading, five seconds at most.
        """
        if tr is not None:
            return super().depth(state, tr=tr)
        depth_request(self.opened, state)
        attached.check_state(self.opened, state)
        context = self.opened.context
        return context.counts.count(context.kv.read(self.opened.current)).depth

    def totals(self, *, tr: ReadTransaction | None = None) -> Totals:
        """Return the counted depth, and the traffic that came through this program."""
        if tr is not None:
            return super().totals(tr=tr)
        ready = self.depth()
        return self.opened.context.kv.read(lambda tr: attached.totals_of(tr, self.opened, ready))

    def depth_unless(self, stop: Callable[[], bool]) -> int | None:
        """Count the ready items until `stop`, asked again and again, says so: None."""
        context = self.opened.context
        count = context.counts.count_unless(stop, context.kv.read(self.opened.current))
        return None if count is None else count.depth

    # Bulk

    def last_place(self) -> bytes | None:
        """Return the place of the last item, for a purge that takes no more than is there when it begins."""
        return self.opened.context.kv.read(lambda tr: attached.last_place(tr, self.opened))

    def take_chunk(self, tr: Transaction, *, after: bytes | None, last: bytes, limit: int) -> Chunk:
        """Take at most `limit` items behind the place `after`, up to the place `last`: key by key, never as a range."""
        return attached.take_chunk(tr, self.opened, after=after, last=last, limit=limit)


def open_queue(context: StoreContext, config: Config) -> Queue:
    """Return the facade that fits a queue's config."""
    return AttachedQueue(context, config) if config.attached else Queue(context, config)
