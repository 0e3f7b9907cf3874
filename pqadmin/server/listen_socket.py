"""The TCP socket that the site listens on."""

import errno
import socket

from pqadmin.conf import ip


class CannotListen(Exception):
    """The address cannot be listened on; the message is one line for a person."""


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address, not yet listening; raises CannotListen."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:  # the second of a part of a name that is too long, or empty
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CannotListen(f"{host!r} is no address of this machine: {why}.") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise CannotListen(_why(error, host, port)) from None
    return listener


def url(listener: socket.socket) -> str:
    """Return the address for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ip.ALL:
        host = "localhost"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use; choose another with --port or PQADMIN_PORT."
    if error.errno == errno.EACCES:
        return f"Port {port} of {host} needs more rights; choose one above 1023 with --port or PQADMIN_PORT."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine; choose another with --host or PQADMIN_HOST."
    return f"Cannot listen on port {port} of {host}: {error.strerror}."
