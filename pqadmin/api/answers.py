"""Answers in JSON, and requests with an Idempotency-Key, which are executed once.

The first answer is kept under the key in the transaction that executes the request: see decision 17.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, TypeVar
from urllib.parse import quote

from django.http import HttpResponse

from pqadmin import site_audit
from pqadmin.accounts.caller import Caller
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.files.plain_text import json_text
from pqadmin.files.shapes import Shape
from pqadmin.live.monitor import get_monitor
from pqadmin.site_audit import Author
from pqadmin.store import get_store
from queues import Actions, AnyQueue, RequestKey, Transaction
from queues.errors import AlreadyDone, QueueError, QueueNotFound

T = TypeVar("T")

#: Characters of an Idempotency-Key.
MAX_KEY = 200
#: Digits that no id of a queue has.
_ID_DIGITS = 20
#: Bytes of a body that are read at once.
_PART = 1 << 20
_WAIT = re.compile(r"(^|&)wait=[^&]*")
#: Headers that say what a request asks for, beside its address and body.
_ASKING = ("Content-Type", "PQ-Priority", "PQ-Delay", "PQ-Due", "If-Match")


class Nothing(Exception):
    """A request with a key took nothing, so there is nothing to keep under its key."""


def answer(shape: object, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return an answer in JSON."""
    return _response(status, json_text(shape).encode(), headers)


def caller_in(request: ApiRequest) -> Caller:
    """Return the caller of a request that was authenticated."""
    return request.auth


def meant_id(request: ApiRequest) -> int | None:
    """Return the id of the queue that a request means, -1 for what is no id. None: the one that has the name."""
    meant = request.META.get("HTTP_PQ_QUEUE_ID")
    if meant is None:
        return None
    return int(meant) if meant.isascii() and meant.isdigit() and len(meant) < _ID_DIGITS else -1


def refuse_another(request: ApiRequest, queue: AnyQueue) -> AnyQueue:
    """Return a queue that was found by its name; raise `QueueNotFound` if the request means another one by its id."""
    if meant_id(request) not in (None, queue.id):
        raise QueueNotFound(queue.name, name_taken=True)
    return queue


def key_of(request: ApiRequest) -> str | None:
    """Return the request's Idempotency-Key, known for this caller alone; None: it has none."""
    key = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if key is None:
        return None
    if not (0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        words = f"An Idempotency-Key has 1 to {MAX_KEY} printable characters of ASCII."
        raise Problem(
            "InvalidRequest", words, {"errors": [{"in": "header", "field": "Idempotency-Key", "message": words}]}
        )
    caller = caller_in(request)
    return f"api {caller.user_id} {caller.token_id or ''} {key}"


def content_of(request: ApiRequest, body: bytes | IO[bytes], queue: AnyQueue | None = None) -> bytes:
    """Return what a request asks for: other content under the same key is refused.

    `queue` is the one of the address. It goes by its id: renamed it is the same, and its name may be another one's.
    """
    digest = hashlib.sha256(body if isinstance(body, bytes) else b"")
    if not isinstance(body, bytes):
        while part := body.read(_PART):
            digest.update(part)
    match = request.resolver_match
    assert match is not None
    named = match.kwargs if queue is None else {**match.kwargs, "queue": queue.id}
    query = _WAIT.sub("", request.META["QUERY_STRING"]).strip("&")  # how long to wait for an item is no part of it
    asked = [request.method, match.route, named, query, *(request.headers.get(name, "") for name in _ASKING)]
    return json.dumps([*asked, digest.hexdigest()]).encode()


def once(
    request: ApiRequest, key: str, queue: AnyQueue, execute: Callable[[Transaction], tuple[int, Shape]]
) -> HttpResponse:
    """Execute a verb of a queue and keep its answer under the key in one transaction; run it in a thread."""
    content = content_of(request, request.body, queue)
    found = get_store().once(key, lambda tr: pack(*execute(tr)), content=content)
    return unpack(found.value, repeated=found.repeated)


def act(
    request: ApiRequest,
    perform: Callable[[Actions], T],
    shape: Callable[[T], Shape],
    *,
    queue: AnyQueue | None = None,
    status: int = 200,
    where: Callable[[Shape], str] | None = None,
    keep: float | None = None,
) -> HttpResponse:
    """Perform an action of the caller, once if the request has a key; run it in a thread.

    `queue` is the one of the address, unless the action ends it or its name. `where` returns the address of what was
    made. `keep` is how long the trash keeps what is removed, in seconds.
    """
    key = request_key(request, lambda result: pack(status, shape(result), where), queue)
    actions = get_store().actions(caller_in(request).name, via="api", keep=keep, key=key)
    try:
        actions.refuse_repeated()  # before it reads what the first one changed
        try:
            result = perform(actions)
        except (QueueError, Problem):
            actions.refuse_repeated()  # the first one was executed meanwhile
            raise
        get_monitor().outdated()
    except AlreadyDone as done:
        return unpack(done.answer, repeated=True)
    made = shape(result)
    return answer(made, status, None if where is None else {"Location": where(made)})


def change(
    request: ApiRequest,
    perform: Callable[[Author], tuple[T, Shape]],
    shape: Callable[[T], Shape],
    *,
    secrets: Sequence[str] = (),
    status: int = 200,
    where: Callable[[Shape], str] | None = None,
) -> HttpResponse:
    """Change something of the site itself, once if the request has a key; run it in a thread.

    `perform` returns what was changed, and secrets by their names: the first answer alone shows them, as what is kept
    under the key has null in their place.
    """
    hidden: Shape = dict.fromkeys(secrets)
    shapes: list[Shape] = []

    def shaped(result: T) -> Shape:
        if not shapes:  # once: what is kept under the key is what is answered
            shapes.append(shape(result))
        return shapes[0]

    key = request_key(request, lambda result: pack(status, {**shaped(result), **hidden}, where))
    if (first := _first_change(key)) is not None:  # before it reads what the first one changed
        return first
    author = Author(name=caller_in(request).name, key=key, via="api")
    try:
        result, shown = perform(author)
    except AlreadyDone as done:
        return unpack(done.answer, repeated=True)
    except (QueueError, Problem):
        if (first := _first_change(key)) is not None:  # the first one was executed meanwhile
            return first
        raise
    if key is not None and not author.answered:  # nothing was different now
        kept = site_audit.keep_answer(key, result)
        if kept is not None:
            return unpack(kept.value, repeated=True)
    made = shaped(result)
    return answer({**made, **shown}, status, None if where is None else {"Location": where(made)})


def request_key(request: ApiRequest, kept: Callable[[Any], bytes], queue: AnyQueue | None = None) -> RequestKey | None:
    """Return the key of a request that has one, which keeps the answer that `kept` makes of the result."""
    key = key_of(request)
    return None if key is None else RequestKey(key=key, content=content_of(request, request.body, queue), answer=kept)


def first_answer(key: RequestKey | None) -> HttpResponse | None:
    """Return the first answer of a request that was executed before; raise `KeyReused` for another one."""
    first = None if key is None else get_store().first_answer(key.key, content=key.content)
    return None if first is None else unpack(first.value, repeated=True)


def keep_answer(key: RequestKey | None, result: Any) -> HttpResponse | None:
    """Keep the answer that a key makes of a result; return the first one if one is kept under it."""
    if key is None:
        return None
    kept = key.answer(result)
    found = get_store().once(key.key, lambda tr: kept, content=key.content)
    return unpack(found.value, repeated=True) if found.repeated else None


def _first_change(key: RequestKey | None) -> HttpResponse | None:
    """Return the first answer of a request that changed the site's tables before; raise `KeyReused` for another one."""
    first = None if key is None else site_audit.first_answer(key)
    return None if first is None else unpack(first.value, repeated=True)


def pack(status: int, shape: Shape, where: Callable[[Shape], str] | None = None) -> bytes:
    """Return an answer as it is kept under a key."""
    return (
        json.dumps([status, {} if where is None else {"Location": where(shape)}]).encode()
        + b"\n"
        + json_text(shape).encode()
    )


def unpack(kept: bytes, *, repeated: bool) -> HttpResponse:
    """Return the answer that is kept under a key."""
    head, _, body = kept.partition(b"\n")
    status, headers = json.loads(head)
    return _response(status, body, {**headers, "Idempotent-Replay": "true"} if repeated else headers)


def _response(status: int, body: bytes, headers: Mapping[str, str] | None) -> HttpResponse:
    return HttpResponse(body, status=status, content_type="application/json", headers=headers or {})


def address(*parts: str) -> str:
    """Return the address of something of the API."""
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


def tagged(tag: str) -> Mapping[str, str]:
    """Return the header of an answer that shows something with this tag."""
    return {"ETag": f'"{tag}"'}
