"""What vanished processes left of staging: requests that nobody waits for, results that nobody took.

Popped items of such results go to the trash, where an operator finds them; they may have been delivered, as far as
anybody else can tell. Leased ones come back when their leases expire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from queues.context import StoreContext
from queues.items import ready
from queues.keys.queue_keys import QueueKeys
from queues.kv.port import ReadTransaction, Transaction
from queues.model.config import Config, decode
from queues.model.records import UNREADABLE, Tell, warn
from queues.serving import staging_records
from queues.serving.staging import said_ms
from queues.trash.trash import Trash

#: Milliseconds after which nobody can be waiting any more.
KEPT_MS = 300_000
#: Who is said to have removed the items.
NOBODY = "a process that died"
_STEP = 500


def find_unclaimed(tr: ReadTransaction, keys: QueueKeys, now_ms: int) -> tuple[list[bytes], list[tuple[int, bytes]]]:
    """Return the keys of old requests and of an old fulfiller, and the requests whose results are old."""
    before = now_ms - KEPT_MS
    requests = tr.get_range(*keys.requests(before), limit=_STEP)
    parts = tr.get_range(*keys.results(before), limit=_STEP)
    fulfiller = tr.get(keys.staging)
    old = [key for key, _ in requests.wait()]
    if _is_old(fulfiller.wait(), before):
        old.append(keys.staging)
    return old, list(dict.fromkeys(keys.result_of(key) for key, _ in parts.wait()))


def sweep_unclaimed(context: StoreContext, trash: Trash, config: Config, *, tell: Tell = warn) -> int:
    """Clear what vanished processes left in a queue; return how many items went to the trash.

    Results that cannot be read stay, and `tell` hears of them.
    """
    keys, now_ms = context.keyspace.queue(config.id), context.now_ms()
    old, results = context.kv.read(lambda tr: find_unclaimed(tr, keys, now_ms))
    if old:
        context.kv.transact(lambda tr: _forget(tr, keys, old, now_ms - KEPT_MS))
    swept = 0
    for ms, request in results:
        trash_ids = context.id_generator.new_ids(ready.MAX_ITEMS)

        def bring_away(
            tr: Transaction, ms: int = ms, request: bytes = request, ids: Sequence[bytes] = trash_ids
        ) -> int:
            tr.use_reserve()
            record = staging_records.collect(tr, keys, ms=ms, request=request)
            items = (
                [] if record is None else staging_records.popped(record, config)
            )  # none: its process takes them just now
            trash.put_each(tr, ids, config, items, by=NOBODY)
            return len(items)

        try:
            swept += context.kv.transact(bring_away)
        except UNREADABLE as error:
            tell(f"What a process that died had asked queue {config.id} for", error)
    return swept


def sweep_all_unclaimed(context: StoreContext, trash: Trash, stopping: Callable[[], bool] = lambda: False) -> int:
    """Do the same in every queue, until told to stop."""
    begin, end = context.keyspace.all_configs
    swept = 0
    while not stopping():
        pairs = context.kv.read(lambda tr, begin=begin: tr.get_range(begin, end, limit=_STEP).wait(), background=True)  # type: ignore[misc]
        for config in (decode(record) for _, record in pairs):
            if config is not None and not config.attached:
                swept += sweep_unclaimed(context, trash, config)
        if len(pairs) < _STEP:
            break
        begin = pairs[-1][0] + b"\0"
    return swept


def _forget(tr: Transaction, keys: QueueKeys, old: Sequence[bytes], before_ms: int) -> None:
    tr.use_reserve()
    for key, read in [(key, tr.get(key)) for key in old]:
        record = read.wait()
        if record is not None and (key != keys.staging or _is_old(record, before_ms)):
            tr.clear(key)


def _is_old(record: bytes | None, before_ms: int) -> bool:
    try:
        return record is not None and said_ms(record) <= before_ms
    except UNREADABLE:
        return False  # somebody of a newer release
