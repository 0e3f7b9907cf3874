"""Search for items in all queues that the caller may see, and dead items by their errors, in bounded steps."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Annotated

from django.http import HttpResponse
from ninja import Query, Router

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.rights import Right
from pqadmin.api import schemas
from pqadmin.api.answers import answer
from pqadmin.api.authorization import allow, found
from pqadmin.api.items.matching import PREVIEW, State
from pqadmin.api.parameters import Cursor, Limit
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.api.values import looked_shape
from pqadmin.display.redaction import rules_of
from pqadmin.files.shapes import time_shape
from pqadmin.pages.error_groups import dead_errors
from pqadmin.pages.item_search import Search
from pqadmin.store import get_store
from queues import Query as ItemQuery
from queues.admin import MAX_SEARCH_TEXT, STATES, check_glob, name_pattern

router = Router(tags=["Items"])

#: Seconds after which an answer goes out with a way on.
SECONDS = 0.4


@router.get("/search", operation_id="search", summary="Search all queues", response=schemas.Hits)
@in_thread
def search(
    request: ApiRequest,
    q: Annotated[str, Query(max_length=MAX_SEARCH_TEXT, description="A part of the value.")] = "",
    field: Annotated[str, Query(description="A path such as `customer.id`, in which `q` is looked for.")] = "",
    exact: Annotated[bool, Query(description="The field is `q`.")] = False,
    id: Annotated[str, Query(description="An id, or a part of one.")] = "",  # as the item's
    queue: Annotated[str, Query(description="Only queues with names that fit this pattern (`*` and `?`).")] = "*",
    state: Annotated[State | None, Query(description="Only items of this state.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """Return items that fit, queue by queue. With a `next` the search is not over, though a page may be empty."""
    scope, store = allow(request, Verb.READ, Right.READ), get_store()
    states: Sequence[str] = STATES if state is None else (state,)
    fits = name_pattern((check_glob(queue),)).fullmatch
    look = Search(
        query=ItemQuery(text=q, field=field, exact=exact, item_id=id),
        names=[name for name in scope.of_those(store.directory()) if fits(name)],
        states=states,
        preview=PREVIEW,
    )
    look.run(*_read(cursor), limit=limit, seconds=SECONDS)
    hits = [
        {"queue": there.name, "item": looked_shape(item, rules_of(there.config.redact))} for there, item in look.hits
    ]
    onward = None if look.onward is None else _write(*look.onward)
    return answer({"hits": hits, "searched": look.searched, "unreadable": look.unread, "next": onward})


@router.get(
    "/queues/{queue}/errors", operation_id="dead_errors", summary="Dead items by error", response=schemas.DeadErrors
)
@in_thread
def dead(request: ApiRequest, queue: str, cursor: Cursor = None) -> HttpResponse:
    """Return how many items died of which error, of at most 10,000 that died last; errors differ in more than numbers.

    `error` is for lists and bulk jobs of dead items. With a `next` there are more dead items behind.
    """
    there = found(request, queue, Verb.READ, Right.READ)
    errors = dead_errors(there.name, cursor)
    groups = [
        {
            "error": group.error,
            "items": group.count,
            "first_died_at": time_shape(group.first),
            "last_died_at": time_shape(group.last),
            "sample": group.sample,
        }
        for group in errors.groups
    ]
    return answer({"queue": there.name, "errors": groups, "searched": errors.looked, "next": errors.cursor})


def _write(name: str, state: str, after: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([name, state, after]).encode()).decode()


def _read(cursor: str | None) -> tuple[str, str, str]:
    """Return the queue, the state and the cursor at which a search goes on."""
    if cursor is None:
        return "", "", ""
    try:
        name, state, after = json.loads(base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, TypeError, UnicodeError, binascii.Error, RecursionError):
        name = state = after = 0
    if not isinstance(name, str) or not isinstance(state, str) or not isinstance(after, str):
        raise Problem("BadCursor", "The cursor is of another list, or damaged.")
    return name, state, after
