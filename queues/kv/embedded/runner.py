"""What goes on inside a batch: functions run one by one, requests of one server served together."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from queues.kv.embedded.batch import Batch
from queues.kv.embedded.calls import Calls
from queues.kv.embedded.failures import EngineFailure
from queues.kv.embedded.room import SpaceLimit
from queues.kv.embedded.transaction import EmbeddedTransaction
from queues.kv.port import Refused, Server, Ticket

T = TypeVar("T")

log = logging.getLogger("queues.kv")

#: A batch is committed after so many functions, seconds, bytes or stamps, or when nobody waits any more.
MAX_FUNCTIONS = 2_000
MAX_SECONDS = 0.010
MAX_BYTES = 4_000_000
MAX_STAMPS = 1 << 19
#: Requests of one server that are served together.
MAX_REQUESTS = 200
#: Seconds after which a function is worth a warning, as it holds up everybody: of the processor, as on a busy machine
#: any function may take longer by the clock, and by the clock.
SLOW = 0.050
VERY_SLOW = 0.250


class Runner:
    """Runs what callers handed in; what fails is undone alone. Used by the writer thread only."""

    def __init__(self, calls: Calls, room: SpaceLimit, clock: Callable[[], float]) -> None:
        self._calls = calls
        self._room = room
        self._clock = clock
        self.reads = 0

    def run_all(self, batch: Batch, taken: list[Ticket], before_function: Callable[[], None]) -> None:
        """Run calls until the batch is full or nobody waits. Raises EngineFailure when the batch is lost."""
        before, worked = time.perf_counter(), time.thread_time()
        until = before + MAX_SECONDS
        requests: list[Ticket] = []
        while True:
            room = min(MAX_REQUESTS - len(requests), MAX_FUNCTIONS - len(taken))
            function = self._calls.take_up_to_function(taken, requests, room)
            if function is not None:
                before_function()
                self.run_alone(batch, function)
            elif requests:
                self._serve_all(batch, requests)
                requests = []
            else:
                return
            now = time.perf_counter()
            if now - before > SLOW and (time.thread_time() - worked > SLOW or now - before > VERY_SLOW):
                work = "requests" if function is None else _name(function.request)
                log.warning("A transaction took %.0f ms and held up all others: %s", (now - before) * 1e3, work)
            before = now
            if now > until or len(taken) >= MAX_FUNCTIONS or batch.size > MAX_BYTES or batch.stamps > MAX_STAMPS:
                self._serve_all(batch, requests)
                return

    def run_alone(self, batch: Batch, call: Ticket) -> None:
        """Run one function, or serve one request; undo it alone if it fails."""
        if call.server is None:
            call.answer, call.error = self._attempt(batch, call.request)
        else:
            self._serve(batch, call.server, [call])

    def _serve_all(self, batch: Batch, requests: Sequence[Ticket]) -> None:
        """Serve what was gathered, first what others' requests may need: pushes before pops."""
        together: dict[Server[Any, Any], list[Ticket]] = {}
        for call in requests:
            group = together.get(call.server)  # type: ignore[arg-type]
            if group is None:
                together[call.server] = [call]  # type: ignore[index]
            else:
                group.append(call)
        for server in sorted(together, key=_contended):
            self._serve(batch, server, together[server])

    def _serve(self, batch: Batch, server: Server[Any, Any], calls: list[Ticket]) -> None:
        """Serve requests of one server; where that fails, each alone."""
        done = 0
        while done < len(calls):
            waiting = calls[done:]
            answers, error = self._attempt(batch, _Service(server, waiting))
            if error is None:
                for call, answer in zip(waiting, answers, strict=False):  # the others are served next
                    if type(answer) is Refused:
                        call.answer, call.error = None, answer.error
                    else:
                        call.answer, call.error = answer, None
                done += len(answers)
            elif len(waiting) == 1:
                waiting[0].answer, waiting[0].error = None, error
                done += 1
            else:
                for call in waiting:
                    self._serve(batch, server, [call])
                return

    def _attempt(self, batch: Batch, fn: Callable[[EmbeddedTransaction], T]) -> tuple[T | Any, BaseException | None]:
        """Run a function and return its result, or its error once it is undone."""
        mark = len(batch.log)
        tr = EmbeddedTransaction(batch, self._clock)
        try:
            result = fn(tr)
            tr.finish()
            if tr.lacks_room():
                raise self._room.full()
            tr.join_batch()
        except EngineFailure:
            raise
        except BaseException as error:  # whatever it is, it is the caller's
            if isinstance(tr.failure, EngineFailure):
                raise tr.failure from error
            batch.undo(mark)
            return None, error
        finally:
            self.reads += tr.reads
            tr.end()
        return result, None


class _Service:
    """The function that has a server serve these calls."""

    __slots__ = ("_requests", "_server")

    def __init__(self, server: Server[Any, Any], calls: Sequence[Ticket]) -> None:
        self._server = server
        self._requests = [call.request for call in calls]

    def __call__(self, tr: EmbeddedTransaction) -> Sequence[Any]:
        answers = self._server.serve(tr, self._requests)
        if not 0 < len(answers) <= len(self._requests):
            raise RuntimeError(f"{self._server!r} answered {len(answers)} of {len(self._requests)} requests.")
        return answers


def _name(function: object) -> str:
    """Return what to call a function in a log: where it is written."""
    if isinstance(function, partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', named)}"


def _contended(server: Server[Any, Any]) -> bool:
    return server.contended
