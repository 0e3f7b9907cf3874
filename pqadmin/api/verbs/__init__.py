"""The verbs of programs: push, pop, peek, lease and what settles leases, awaited without a thread.

A request with an Idempotency-Key is a transaction of its own, in a thread; those without one join batches.
"""

# In the order of their operations in the schema: `settle` imports `take`.
from pqadmin.api.verbs import push, settle, take
from pqadmin.api.verbs.open_queue import router

__all__ = ["push", "router", "settle", "take"]
