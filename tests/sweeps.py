"""Parts of a sweep by themselves: what the background does when it is due."""

from queues import Store
from queues.background import empty_trash, stale_commit_slots, unclaimed_staging
from queues.background.merge_generations import merge
from queues.bulk.bulk_job import sweep_jobs
from queues.trash.trash import KEPT_MS

LIMIT = 10_000


def sweep_slots(store: Store) -> int:
    """Clear what clients of a cluster left behind more than 24 hours ago; return how many keys that were."""
    return stale_commit_slots.sweep_slots(store.context.kv, store.context.keyspace, now_ms=store.context.clock.now_ms())


def sweep_unclaimed(store: Store) -> int:
    """Bring to the trash what processes popped for ones that vanished minutes ago; return how many items."""
    left = [config for config in unclaimed_staging.unclaimed_in(store.context) if config is not None]
    return sum(unclaimed_staging.sweep_unclaimed(store.context, store.trash, config) for config in left)


def sweep_trash(store: Store, *, limit: int = LIMIT) -> int:
    """Clear what is in the trash beyond its deadline, at most `limit` keys or a step more; return how many."""
    kv, keyspace, now_ms = store.context.kv, store.context.keyspace, store.context.clock.now_ms()
    list(sweep_jobs(kv, keyspace, before_ms=now_ms - KEPT_MS))
    return empty_trash.sweep_trash(kv, keyspace, now_ms=now_ms, limit=limit)


def merge_generations(store: Store, *, limit: int = LIMIT) -> int:
    """Merge what undone purges brought back, at most `limit` items or a step more; return how many."""
    return merge(store.context.kv, store.context.keyspace, limit=limit)
