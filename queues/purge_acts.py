"""Purging as an act: all that is ready and delayed in a queue goes to the trash at once, whatever its number."""

from __future__ import annotations

from queues import purging
from queues.acting import Note
from queues.attached.acts import AttachedActs, Purged
from queues.errors import ConfirmationMismatch, DepthChanged
from queues.kv.port import Transaction
from queues.names import canonical, display_name


class PurgeActs(AttachedActs):
    """The acts of one person that empty a queue."""

    def purge(
        self,
        name: str,
        *,
        confirm: str,
        expect_depth: int | None = None,
        tolerance: int = 0,
        expect_id: int | None = None,
        reason: str = "",
    ) -> Purged:
        """Take every ready and delayed item of a queue into the trash; leased and dead ones stay.

        Costs the same at any depth, and so does `undo` of its trash entry: there is one entry, or two when an earlier
        undo's items are still being merged. `confirm` is the name as typed, else `ConfirmationMismatch`; a depth (ready
        and delayed) further than `tolerance` from `expect_depth` raises `DepthChanged`. The depth is the one of the
        moment when the act began: what is pushed while it commits is either left alone or in the trash as well.
        """
        if canonical(confirm) != canonical(name):
            raise ConfirmationMismatch(
                "To purge this queue, type its name: {queue}. Nothing was taken.", queue=display_name(name)
            )
        trash_ids = self._backing.minter.mint_many(purging.MAX_LIVE)

        def act(tr: Transaction, audit: Note) -> Purged | None:
            queue = self._queue(tr, name, expect_id)
            if queue.attached:
                return None
            taken = purging.purge(tr, self._backing.keyspace, queue.config)
            depth = sum(taken.values())
            if expect_depth is not None and abs(depth - expect_depth) > tolerance:
                raise DepthChanged(
                    "{queue} holds {depth:,} items now, not the {seen:,} you confirmed: nothing was taken.",
                    depth,
                    queue=display_name(name),
                    depth=depth,
                    seen=expect_depth,
                )
            for trash_id, (generation, items) in zip(trash_ids, taken.items(), strict=False):
                self._trash.put_generation(tr, trash_id, queue.config, generation, depth=items, by=self._actor)
            if taken:
                audit(queue, "purge", count=depth, reason=reason, before={"depth": depth})
            used = tuple(filter(None, map(self._kept, trash_ids[: len(taken)])))
            return Purged(count=depth, skipped=0, trash_ids=used)

        purged = self._act(act)
        if purged is not None:
            return purged
        return self.purge_attached(
            name,
            confirm=confirm,
            expect_depth=expect_depth,
            tolerance=tolerance,
            expect_id=expect_id,
            reason=reason,
        )
