"""The verbs of programs: push, pop, peek, lease and what settles leases, awaited without a thread.

A request with an Idempotency-Key is a transaction of its own, in a thread; those without one join batches.
"""

# In the order of their operations in the schema: `settling` imports `taking`.
from pqadmin.api.hot import pushing, settling, taking
from pqadmin.api.hot.opening import router

__all__ = ["pushing", "router", "settling", "taking"]
