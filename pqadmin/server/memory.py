"""Memory allocator of the site: few arenas, so that what a request took is used again by the next."""

import ctypes

#: glibc's parameter for the number of arenas, and how many the site has. By default each thread gets one of its own,
#: which keeps what a large form or page took. One thread runs at a time under the interpreter's lock, so threads
#: rarely wait for an arena.
_M_ARENA_MAX, _ARENAS = -8, 2


def share_arenas() -> bool:
    """Have all threads of this process allocate from two arenas; False where the C library has no such setting.

    Call it before threads start.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS))
    except (AttributeError, OSError, TypeError):
        return False
