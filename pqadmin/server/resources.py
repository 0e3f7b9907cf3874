"""Resources of this process: file descriptors, raised to what is allowed, and arenas of the memory allocator."""

import contextlib
import ctypes
import resource

#: Descriptors for store, tables, log, bodies in files and pages of refusal.
RESERVE = 128
#: More are never needed, and some programs walk through all that they may have.
MOST = 1 << 20
#: glibc's parameter for the number of arenas, and how many the site has. By default each thread gets one of its own,
#: which keeps what a large form or page took. One thread runs at a time under the interpreter's lock, so threads
#: rarely wait for an arena.
_M_ARENA_MAX, _ARENAS = -8, 2


def raise_limit() -> int:
    """Raise the soft limit to the hard one. Return the limit, 0 if there is none."""
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


def share_arenas() -> bool:
    """Have all threads of this process allocate from two arenas. False where the C library has no such setting.

    Call it before threads start.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS))
    except (AttributeError, OSError, TypeError):
        return False
