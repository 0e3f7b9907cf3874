"""What queues are measured against, each started by the benchmark itself, and how callers reach them."""

from benchmarks.peers.peer import Client, Connection, Door, Missing, Peer, connect, open_peers

__all__ = ["Client", "Connection", "Door", "Missing", "Peer", "connect", "open_peers"]
