"""The engine for tests and throw-away stores: FoundationDB's transactions in memory, with faults on demand."""

from queues.kv.simulated.faults import Fault, Faults, JumpingClock, SeededFaults
from queues.kv.simulated.late_commits import Lateness
from queues.kv.simulated.schedule import Point
from queues.kv.simulated.store import Memory, ScheduledBell, SimulatedStore, open_simulated
from queues.kv.simulated.transaction import SimulatedTransaction

__all__ = [
    "Fault",
    "Faults",
    "JumpingClock",
    "Lateness",
    "Memory",
    "Point",
    "ScheduledBell",
    "SeededFaults",
    "SimulatedStore",
    "SimulatedTransaction",
    "open_simulated",
]
