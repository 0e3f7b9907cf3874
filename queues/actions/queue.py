"""Acts on settings: changing them, told to the audit with what they were before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from queues.actions.actor import Acting, Note
from queues.actions.attached import AttachedActs, Purged
from queues.errors import ConfirmationMismatch, DepthChanged, SettingsChanged, display_name
from queues.items import generations
from queues.kv.port import Transaction
from queues.model.names import canonical
from queues.model.settings import Settings, check_settings, plain, settings_of
from queues.queue import Queue


class _Attached(Exception):
    """The queue to purge is an attached one, which takes many transactions."""


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
        trash_ids = self._context.id_generator.new_ids(generations.MAX_LIVE)

        def act(tr: Transaction, audit: Note) -> Purged:
            queue = self._queue(tr, name, expect_id)
            if queue.attached:
                raise _Attached
            taken = generations.purge(tr, self._context.keyspace, queue.config)
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

        try:
            return self._act(act)
        except _Attached:
            return self.purge_attached(
                name,
                confirm=confirm,
                expect_depth=expect_depth,
                tolerance=tolerance,
                expect_id=expect_id,
                reason=reason,
            )


class SettingsActs(Acting):
    """The acts of one person on settings."""

    def configure(
        self,
        queue_name: str,
        *,
        expect: Mapping[str, Any] | None = None,
        expect_id: int | None = None,
        reason: str = "",
        **changes: Unpack[Settings],
    ) -> Queue:
        """Change settings of a queue; the others stay. Changing nothing is no act.

        `expect` are settings as they were seen: when another person has changed one of these, `SettingsChanged` tells
        which, and nothing is changed. Raises `BadSetting`, `NotForAttached`.
        """

        def act(tr: Transaction, audit: Note) -> Queue:
            queue = self._queue(tr, queue_name, expect_id)
            now = settings_of(queue.config)
            _compare(queue.name, {} if expect is None else check_settings(queue.config, expect), now)
            wanted = check_settings(queue.config, changes)
            changed = {name: value for name, value in wanted.items() if value != now[name]}
            if changed:
                queue.configure(tr=tr, **changed)
                before, after = {name: now[name] for name in changed}, changed
                audit(queue, "configure", count=0, reason=reason, before=plain(before), after=plain(after))
            return self._catalog.queue(queue_name, tr=tr)

        return self._act(act)


def _compare(queue_name: str, seen: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changed = {name: (value, now[name]) for name, value in seen.items() if value != now[name]}
    if changed:
        raise SettingsChanged(
            "Settings of {queue} were changed since you saw them: {names}. Nothing was changed now.",
            changed,
            queue=display_name(queue_name),
            names=", ".join(sorted(changed)),
        )
