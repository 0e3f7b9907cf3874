"""The address of a site, and to which a token may be sent."""

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from queues.errors import BadStoreURL


def check_address(url: str, *, with_token: bool) -> SplitResult:
    """Return the parts of a site's address; raise `BadStoreURL` for none, and for one that is no place for a token."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        raise BadStoreURL("{url} cannot be used: {error}", url=repr(url), error=str(error)) from None
    if not host or parts.query or parts.fragment or parts.username is not None:
        raise BadStoreURL("{url} is no address of a site: write https://HOST.", url=repr(url))
    if with_token and parts.scheme == "http" and not is_loopback(host):
        raise BadStoreURL(
            "A token is not sent to {url} in the clear: write https://. Plain http is for this machine alone.",
            url=repr(url),
        )
    return parts


def is_loopback(host: str) -> bool:
    """Say whether what is sent to a host stays on this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
