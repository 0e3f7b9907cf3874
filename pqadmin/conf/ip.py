"""IP addresses of clients: written in one way, and the network that counts as one client."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

#: What a socket listens on that listens on every address of the machine.
ALL = frozenset({"0.0.0.0", "::"})  # noqa: S104 # compared, not bound


@lru_cache(maxsize=10_000)
def parse(address: str) -> IPv4Address | IPv6Address | None:
    """Return an address, an IPv4 address inside IPv6 as IPv4. None for a text that is no address.

    A socket that listens on `::` takes IPv4 connections too, and names 192.0.2.1 `::ffff:192.0.2.1`.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, IPv6Address) else parsed


def plain(address: str) -> str:
    """Return an address as it is written; a text that is no address as it is."""
    parsed = parse(address)
    return address if parsed is None else str(parsed)


def client(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or an IPv6 /64, as one subscriber has at least that many."""
    parsed = parse(address)
    return str(ip_network((int(parsed), 64), strict=False)) if isinstance(parsed, IPv6Address) else plain(address)
