"""Authorization of a request: the right of its caller, and the queue that it names."""

from pqadmin.accounts.caller import Caller, Verb
from pqadmin.accounts.rights import Right, RightMissing
from pqadmin.accounts.roles import SAFE
from pqadmin.accounts.scope import Scope
from pqadmin.api.answers import caller_in, refuse_another
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.store import get_store
from queues import AnyQueue


def allow(request: ApiRequest, verb: Verb, right: Right, queue: str | None = None) -> Scope:
    """Return what the caller may do; raise what refuses this."""
    caller = caller_in(request)
    caller.require(verb, right, queue, only_reads=request.method in SAFE)
    return caller.scope


def found(request: ApiRequest, name: str, verb: Verb, right: Right) -> AnyQueue:
    """Return the queue if the caller has the right on it; raise `QueueNotFound`."""
    allow(request, verb, right, name)
    return refuse_another(request, get_store().queue(name))


def refuse_tokens(request: ApiRequest, words: str) -> None:
    """Raise a problem with these words unless the caller is a person's session."""
    if caller_in(request).token_id is not None:
        raise Problem("Forbidden", words)


def administer(request: ApiRequest) -> Caller:
    """Return the caller if it may administer the site: an admin now, and of a token one for all queues."""
    scope = allow(request, Verb.ADMINISTER, Right.ADMIN)
    if not scope.role.has(Right.ADMIN):
        raise RightMissing(Right.ADMIN, scope.role)
    return caller_in(request)
