"""What the killed children do: offer to sweep, and tell of every round that did something."""

import threading
from itertools import count

from queues import open_store
from queues.background.service import Upkeep
from tests.crash.harness import Report

#: Seconds of a holding: so soon the next child takes over from a killed one.
SECONDS = 0.2


def sweep_for_ever(report: Report, url: str, name: str) -> None:
    """Sweep, once elected, until killed."""
    store = open_store(url)
    numbers = count()
    upkeep = Upkeep(
        store.context, seconds=SECONDS, name=name, tell=lambda swept: report.acknowledge(f"{next(numbers)}")
    )
    upkeep.start()
    threading.Event().wait()
