"""Idempotency keys: a request that carries a key is executed once. Sent again, it gets its first answer.

The answer is stored under the key in the transaction of the request, so that neither is there without the other: after
a crash, or after a commit with an unknown result, the same request is sent again and is executed at most once. Of two
concurrent transactions with one key the second one conflicts, and then reads the answer of the first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256

from queues.errors import BadKey, BadValue, KeyReused
from queues.keys.keyspace import Keyspace
from queues.kv.port import KeyValueStore, ReadTransaction, Transaction
from queues.model import ids, records

#: Milliseconds by the store's clock for which answers are kept; then the next hourly sweep removes them.
KEPT_MS = 24 * 3600 * 1000
#: Characters of a key.
MAX_KEY = 1_000
#: Bytes of an answer in one pair, and keys of one transaction of the sweep.
_PART, _STEP = records.MAX_VALUE_SIZE, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a request that carries a key."""

    value: bytes
    #: When the request was executed, by the store's clock.
    at: datetime
    #: Whether it was executed before, so that nothing was done now.
    repeated: bool


def once(
    tr: Transaction,
    keyspace: Keyspace,
    key: str,
    execute: Callable[[], bytes],
    *,
    content: bytes = b"",
    now_ms: int,
) -> Answer:
    """Execute a request and store its answer under its key, unless an answer is there: then return that.

    `content` is all that the request asks for: another one under the same key raises `KeyReused`. What `execute` raises
    is not stored. Raises `BadKey`, `BadValue`.
    """
    asked = _digest(content)
    first = first_answer(tr, keyspace, key, content=content)
    if first is not None:
        return first
    value = execute()
    if not isinstance(value, bytes):
        raise BadValue("An answer is bytes, not {type}: encode it first.", type=type(value).__name__)
    parts = [value[at : at + _PART] for at in range(0, len(value), _PART)] or [b""]
    header = {"at": now_ms, "content": asked, "parts": len(parts)}
    digest = keyspace.digest(key)
    tr.set(keyspace.answers.key(digest), records.encode(header, parts[0]))
    tr.set(keyspace.answer_times.key(now_ms, digest), b"")
    for n, part in enumerate(parts[1:], start=1):
        tr.set(keyspace.answers.key(digest, n), part)
    return Answer(value=value, at=ids.at(now_ms), repeated=False)


def first_answer(tr: ReadTransaction, keyspace: Keyspace, key: str, *, content: bytes | None = None) -> Answer | None:
    """Return the stored answer of a key, or None. Raise `KeyReused` unless it answers this content, if given."""
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY:
        raise BadKey("An idempotency key is text of 1 to {most:,} characters.", most=MAX_KEY)
    asked, digest = None if content is None else _digest(content), keyspace.digest(key)
    record = tr.get(keyspace.answers.key(digest)).wait()
    if record is None:
        return None
    header, value = records.decode(record)
    if asked is not None and header["content"] != asked:
        raise KeyReused("This key was used for another request: nothing was done. Send this one with a new key.")
    rest = [tr.get(keyspace.answers.key(digest, n)) for n in range(1, header["parts"])]
    value = b"".join((value, *(part.wait() or b"" for part in rest)))
    return Answer(value=value, at=ids.at(header["at"]), repeated=True)


def sweep_answers(kv: KeyValueStore, keyspace: Keyspace, *, before_ms: int) -> int:
    """Remove the answers of requests that were executed before this time, and return how many."""
    swept = 0
    while True:
        step = kv.transact(partial(_sweep_step, keyspace=keyspace, before_ms=before_ms), background=True)
        swept += step
        if step < _STEP:
            return swept


def _sweep_step(tr: Transaction, *, keyspace: Keyspace, before_ms: int) -> int:
    times = tr.get_range(*keyspace.answer_times.before(max(0, before_ms)), limit=_STEP).wait()
    if times:
        tr.use_reserve()
    for key, _ in times:
        answer = keyspace.answers.sub(keyspace.answer_times.elements(key)[1])
        tr.clear_range(answer.prefix, answer.all[1])
        tr.clear(key)
    return len(times)


def _digest(content: object) -> str:
    if not isinstance(content, bytes):
        raise BadValue("The content of a request is bytes, not {type}.", type=type(content).__name__)
    return sha256(content).hexdigest()
