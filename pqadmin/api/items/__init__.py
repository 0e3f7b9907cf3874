"""Particular items: list, look, reveal, and the acts of people on them, audited and undoable."""

# In the order of their operations in the schema: `acts` imports `look`.
from pqadmin.api.items import acts, look
from pqadmin.api.verbs.open_queue import router

__all__ = ["acts", "look", "router"]
