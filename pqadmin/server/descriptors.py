"""File descriptors of this process: raised to what is allowed, and how many connections that leaves room for."""

import contextlib
import resource

#: Descriptors for store, tables, log, bodies in files and pages of refusal.
RESERVE = 128
#: More are never needed, and some programs walk through all that they may have.
MOST = 1 << 20


def raise_limit() -> int:
    """Raise the soft limit to the hard one; return the limit, 0 if there is none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY:
        return 0
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # a kernel that allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return soft


def connections(limit: int, wanted: int) -> int:
    """Return how many connections may be open: `wanted`, or what the limit leaves room for if that is less or 0."""
    room = max(limit // 2, limit - RESERVE) if limit else 0
    return min((n for n in (wanted, room) if n), default=0)
