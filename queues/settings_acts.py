"""Acts on settings: changing them, told to the audit with what they were before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from queues.acting import Acting, Note
from queues.errors import SettingsChanged
from queues.kv.port import Transaction
from queues.names import display_name
from queues.queue import Queue
from queues.settings import Settings, check_settings, plain, settings_of


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
            return self._store.queue(queue_name, tr=tr)

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
