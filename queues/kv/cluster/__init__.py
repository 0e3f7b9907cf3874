"""The FoundationDB engine: a thin adapter of the storage port to a cluster, through FoundationDB's Python binding."""

from queues.kv.cluster.store import ClusterStore, open_cluster

__all__ = ["ClusterStore", "open_cluster"]
