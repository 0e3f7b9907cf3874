"""Dispatcher: makes delayed items ready when they are due, and ends leases when they expire.

One thread for all queues of a process. It sleeps until the next due time; an earlier one wakes it.
"""

import logging
import threading
from collections.abc import Sequence

from queues.errors import ForkedStore, QueueNotFound, StoreClosed
from queues.operations.wait import LONGEST, Outlook
from queues.operations.wait import tend as tend_queue
from queues.queue import Queue
from queues.store import Store
from queues.workers.error_text import said
from queues.workers.rests import AFTER_TROUBLE, OF_THE_STORE, QueueRests

log = logging.getLogger("queues.workers")


class Dispatcher:
    """Does what is due in some queues. `run` is the body of its thread."""

    def __init__(self, store: Store, queues: Sequence[Queue]) -> None:
        self._store = store
        self._queues = tuple(queues)
        self._rests = QueueRests()
        self._stop = threading.Event()

    def __repr__(self) -> str:
        return f"<Dispatcher of {', '.join(repr(queue.name) for queue in self._queues)}>"

    def run(self) -> None:
        """Do what is due until `stop`."""
        while not self._stop.is_set():
            try:
                self._look()
            except (StoreClosed, ForkedStore):
                return
            except Exception as error:  # whatever it is: the next look may find the store well
                log.warning("The dispatcher rests for %g s: %s", AFTER_TROUBLE, said(error))
                self._stop.wait(AFTER_TROUBLE)

    def follow(self, queues: Sequence[Queue]) -> None:
        """Do what is due in these queues from now on."""
        self._queues = tuple(queues)

    def stop(self) -> None:
        """Make `run` end; it may sleep until the store's watches are interrupted."""
        self._stop.set()

    def _look(self) -> None:
        """Do what is due now, or sleep."""
        queues = self._queues
        awake = self._rests.awake(queues)
        outlooks = outlooks_of(self._store, awake, self._rests)
        if tend(outlooks, self._rests):
            return
        left = self._rests.left
        if not awake:
            self._stop.wait(left)
            return
        nearest = min((outlook.rest for outlook in outlooks.values()), default=LONGEST)
        longest = LONGEST if len(outlooks) == len(queues) else AFTER_TROUBLE
        self._store.wait_for_items(outlooks.values(), timeout=min(nearest, longest, LONGEST if left is None else left))


def outlooks_of(store: Store, queues: Sequence[Queue], rests: QueueRests) -> dict[Queue, Outlook]:
    """Return the outlooks of the queues that exist. Of several, those that cannot be read rest."""
    try:
        return store.outlooks(queues)
    except OF_THE_STORE:
        raise
    except Exception:
        if len(queues) < 2:
            raise
    found: dict[Queue, Outlook] = {}
    failed: dict[Queue, Exception] = {}
    for queue in queues:
        try:
            found |= store.outlooks([queue])
        except OF_THE_STORE:
            raise
        except Exception as error:
            failed[queue] = error
    if len(failed) == len(queues):  # it is not the fault of one of them
        raise failed[queues[-1]]
    for queue, why in failed.items():
        rests.failed(queue, why)
    return found


def tend(outlooks: dict[Queue, Outlook], rests: QueueRests) -> bool:
    """Do what is due in these queues; return False when nothing was, or could be read. Those that fail rest."""
    late = [queue for queue, outlook in outlooks.items() if outlook.late]
    done = False
    for queue in late:
        try:
            done |= tend_queue(queue.opened)
        except QueueNotFound:
            done = True
        except OF_THE_STORE:
            raise
        except Exception as error:
            rests.failed(queue, error)
            done = True
    return done
