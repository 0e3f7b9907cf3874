"""Rests after trouble: a second, and ever longer while a server refuses the token."""

from queues.errors import NotAuthenticated, NotPermitted

#: Seconds to rest after the store failed, and at most.
AFTER_TROUBLE, LONGEST_REST = 1.0, 60.0
#: Errors after which the same request is refused again, until a person changes something.
REFUSED = (NotAuthenticated, NotPermitted)


def rest_after(error: BaseException, before: float) -> float:
    """Return the seconds to rest after an error; `before` are those of the rest before it, 0 without one."""
    return min(LONGEST_REST, before * 2) if before and isinstance(error, REFUSED) else AFTER_TROUBLE
