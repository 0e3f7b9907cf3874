"""The engine for tests and throw-away stores: FoundationDB's transactions in memory, with faults on demand."""

from queues.kv.simulated.faults import Fault, Faults, SeededFaults
from queues.kv.simulated.store import SimulatedStore, open_simulated
from queues.kv.simulated.transaction import SimulatedTransaction

__all__ = ["Fault", "Faults", "SeededFaults", "SimulatedStore", "SimulatedTransaction", "open_simulated"]
