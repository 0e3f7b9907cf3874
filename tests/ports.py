"""Ports for programs that a test starts."""

import random
import socket
from pathlib import Path

_RANDOM = random.SystemRandom()
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return an unused port that the system gives to no connection of another process.

    A port from its own range could be taken before the program listens.
    """
    end = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    for _ in range(1_000):
        port = _RANDOM.randrange(min(10_000, end // 2), end)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")
