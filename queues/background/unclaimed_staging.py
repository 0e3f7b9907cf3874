"""What processes that died left of staging: requests without a caller, and results that no process claimed.

Popped items of such results go to the trash, where an operator finds them: no other process can tell whether they were
delivered. Leased items come back when their leases expire.
"""

from collections.abc import Iterator, Sequence

from queues.context import StoreContext
from queues.items import ready
from queues.keys.queue_keys import QueueKeys
from queues.kv.port import KeyValue, ReadTransaction, Transaction
from queues.model.config import Config, decode
from queues.model.range_in_steps import in_background, steps
from queues.model.records import UNREADABLE, Tell, warn
from queues.serving import staging_records
from queues.serving.leadership import Holding
from queues.trash.trash import Trash

#: Milliseconds after which no process can be waiting any more.
KEPT_MS = 300_000
#: The actor of these trash records.
UNCLAIMED_BY = "a process that died"
#: Requests and results of one look at a queue.
_STEP = 500


def find_unclaimed(tr: ReadTransaction, keys: QueueKeys, now_ms: int) -> tuple[list[bytes], list[tuple[int, bytes]]]:
    """Return the keys of old requests and of an old fulfiller, and the requests with old results."""
    before = now_ms - KEPT_MS
    requests = tr.get_range(*keys.requests.before(before + 1), limit=_STEP)
    parts = tr.get_range(*keys.results.before(before + 1), limit=_STEP)
    fulfiller = tr.get(keys.staging)
    old = [key for key, _ in requests.wait()]
    if _is_old(fulfiller.wait(), before):
        old.append(keys.staging)
    return old, list(dict.fromkeys(keys.results.elements(key)[:2] for key, _ in parts.wait()))


def sweep_unclaimed(context: StoreContext, trash: Trash, config: Config, *, tell: Tell = warn) -> int:
    """Clear what processes that died left in a queue. Return how many items went to the trash.

    Results that cannot be read stay, and `tell` is told of them.
    """
    keys, now_ms = context.keyspace.queue(config.id), context.clock.now_ms()
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
            trash.put_each(tr, ids, config, items, by=UNCLAIMED_BY)
            return len(items)

        try:
            swept += context.kv.transact(bring_away)
        except UNREADABLE as error:
            tell(f"What a process that died had asked queue {config.id} for", error)
    return swept


def unclaimed_in(context: StoreContext) -> Iterator[Config | None]:
    """Return the configs of queues in which such processes left something. None after each page of queues."""
    now_ms, keyspace = context.clock.now_ms(), context.keyspace

    def left(tr: ReadTransaction, found: list[KeyValue]) -> list[Config]:
        configs = [config for _, record in found if (config := decode(record)) is not None and not config.attached]
        return [config for config in configs if any(find_unclaimed(tr, keyspace.queue(config.id), now_ms))]

    for some in steps(in_background(context.kv), keyspace.configs.all, left):
        yield from some
        yield None


def _forget(tr: Transaction, keys: QueueKeys, old: Sequence[bytes], before_ms: int) -> None:
    tr.use_reserve()
    for key, read in [(key, tr.get(key)) for key in old]:
        record = read.wait()
        if record is not None and (key != keys.staging or _is_old(record, before_ms)):
            tr.clear(key)


def _is_old(record: bytes | None, before_ms: int) -> bool:
    held = Holding.decode(record)
    return held is not None and held.expires_ms <= before_ms
