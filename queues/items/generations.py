"""Purging a queue in O(1): a new generation, the old one to the trash as it is, and back again.

A purge takes what is ready and delayed; leases and the dead are outside of generations. The purged generation's
counters stay as they are. The new generation's totals begin where the old one's ended, as if everything had left, so
that rates tell of what came and went and of nothing else.

Bringing a generation back lists it again: pushes go to the newest, pops take the best of both, until a merge has moved
item by item what is in the older (`queues.background.merge_generations`). Empty generations are dropped, so that
a purge which nothing was pushed after is undone without a trace. A queue has at most two generations that hold items:
a purge of both gives two trash entries, and bringing back a third raises `StillMerging`.

Every verb reads the config, which a purge and its undo write: a pop or push that runs meanwhile begins anew.
"""

from dataclasses import dataclass, replace

from queues.errors import StillMerging, display_name
from queues.items.counters import CounterDelta, total
from queues.keys.keyspace import Keyspace
from queues.keys.queue_keys import IN_GENERATIONS, SIDES, QueueKeys
from queues.kv.port import Transaction
from queues.model.config import Config

#: Generations that hold items.
MAX_LIVE = 2


@dataclass(frozen=True, slots=True)
class Totals:
    """What came to a generation and left it, by state."""

    ready_in: int
    ready_out: int
    delayed_in: int
    delayed_out: int

    @property
    def depth(self) -> int:
        """The items that are there."""
        return self.ready_in - self.ready_out + self.delayed_in - self.delayed_out


def purge(tr: Transaction, keyspace: Keyspace, config: Config) -> dict[int, int]:
    """Give a queue a new, empty generation and return the depths of those that it had, empty ones left out.

    A queue that is empty keeps what it has.
    """
    keys = keyspace.queue(config.id)
    totals = _totals(tr, keys, config.generations)
    empty = _empty(tr, keys, config.generations)
    taken = {generation: totals[generation].depth for generation in config.generations if generation not in empty}
    if not taken:
        return {}
    tr.use_reserve()
    newest = max(config.last_generation, *config.generations) + 1
    _write(tr, keyspace, replace(config, generations=(newest,), last_generation=newest))
    delta = CounterDelta(keys, wake=True)
    came = sum(each.ready_in for each in totals.values())
    delta.state(newest, "ready", "in", came)
    delta.state(newest, "ready", "out", came)
    delta.traffic("purge", sum(taken.values()))
    delta.apply(tr)
    for generation in empty:
        drop(tr, keys, generation)
    return taken


def bring_back(tr: Transaction, keyspace: Keyspace, config: Config, generation: int) -> int:
    """List a purged generation again and return its depth. Raise `StillMerging` when two other ones hold items."""
    keys = keyspace.queue(config.id)
    empty = _empty(tr, keys, config.generations)
    kept = [live for live in config.generations if live not in empty]
    if len(kept) == MAX_LIVE:
        raise StillMerging(
            "Items that an undo brought back to {queue} are still being merged with newer ones: try "
            "again when that is finished. Nothing was restored.",
            queue=display_name(config.name),
        )
    totals = _totals(tr, keys, (generation, *config.generations))
    generations = tuple(sorted((generation, *kept)))
    _write(tr, keyspace, replace(config, generations=generations))
    if len(generations) > 1:
        tr.set(keyspace.merges.key(config.id), b"")
    delta = CounterDelta(keys, wake=True)
    delta.look_again()
    delta.traffic("restore", totals[generation].depth)
    # Its items have arrived, and nothing has left, since the moment before.
    moved = sum(totals[gone].ready_out for gone in empty) - totals[generation].ready_out
    delta.state(generation, "ready", "in", moved)
    delta.state(generation, "ready", "out", moved)
    delta.apply(tr)
    for gone in empty:
        drop(tr, keys, gone)
    return totals[generation].depth


def drop(tr: Transaction, keys: QueueKeys, generation: int) -> None:
    """Clear the counters of an empty generation. No push adds to it, as `tr` writes the config."""
    tr.clear_range(*keys.generation(generation).everything)


def _totals(tr: Transaction, keys: QueueKeys, generations: tuple[int, ...]) -> dict[int, Totals]:
    """Read the totals by snapshot: pushes that commit first must not conflict with this."""
    reads = {
        generation: [
            tr.snapshot.get(keys.generation(generation).counters.key(state, side))
            for state in IN_GENERATIONS
            for side in SIDES
        ]
        for generation in generations
    }
    return {generation: Totals(*(total(read.wait()) for read in four)) for generation, four in reads.items()}


def _empty(tr: Transaction, keys: QueueKeys, generations: tuple[int, ...]) -> list[int]:
    """Return the generations that hold nothing; a push into them meanwhile conflicts."""
    ranges = {
        generation: (keys.generation(generation).ready.all, keys.generation(generation).delayed.all)
        for generation in generations
    }
    # By snapshot at first: where there is something, it does not matter what is taken or pushed meanwhile.
    reads = {generation: [tr.snapshot.get_key(*of) for of in ranges_of] for generation, ranges_of in ranges.items()}
    empty = [generation for generation, firsts in reads.items() if all(first.wait() is None for first in firsts)]
    for generation in empty:
        for of in ranges[generation]:
            tr.add_read_conflict_range(*of)
    return empty


def _write(tr: Transaction, keyspace: Keyspace, config: Config) -> None:
    tr.set(keyspace.configs.key(config.id), config.encode())
