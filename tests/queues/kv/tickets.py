"""Requests that no thread waits for, as tests submit them."""

from typing import Any

from queues.kv.port import KeyValueStore, Landing, Server, Ticket


def submitted(kv: KeyValueStore, server: Server[Any, Any], request: Any, landing: Landing) -> Ticket:
    """Submit a request and return its ticket."""
    ticket = Ticket(server, request, landing)
    kv.submit(ticket)
    return ticket
