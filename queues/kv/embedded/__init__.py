"""The default engine: an LMDB file shared by the processes of one machine, with group commit."""

from queues.kv.embedded.store import EmbeddedStore, open_embedded, verify_embedded

__all__ = ["EmbeddedStore", "open_embedded", "verify_embedded"]
