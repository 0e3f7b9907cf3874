"""`pqadmin tail`: what is pushed to a queue and taken from it, as it happens."""

import time

from pqadmin.commands import queue_diff
from pqadmin.commands.arguments import QUEUE
from pqadmin.commands.queue_diff import Event
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.display import format as write
from pqadmin.display import items as foreign
from pqadmin.display.format import visible
from pqadmin.display.redaction import NOTHING
from pqadmin.display.words import done_words
from pqadmin.files.plain_text import json_text
from pqadmin.files.shapes import Shape, item_shape, pause_shape, time_shape
from queues import AnyQueue, Store
from queues.admin import QueueLook

#: Seconds between two looks, and at most: other programs that write to an attached queue announce nothing.
_SHORTEST, _LONGEST = 0.2, 1.0
#: Seconds between two looks through a server, which answers at once where nothing changed.
_POLL = 0.5
#: Items of which each look tells; of the rest the numbers.
_MOST = 50
#: Characters of a value on its line.
_VALUE_WIDTH = 100


class Command(StoreCommand):
    """Follow a queue: a line for each item that is pushed, leased, released or taken, as it happens.

    It changes nothing. Where more happens than can be told by items, numbers tell the rest. Ctrl-C ends it.
    """

    arguments = (QUEUE,)

    def run(self, store: Store, options: Options) -> None:
        """Follow the queue until stopped."""
        queue = store.queue(options["queue"])
        tell = self._shapes if options["json"] else self._lines
        with self.until_stopped():
            before = queue_diff.look(store, queue)
            assert before is not None
            if self.stderr.isatty():
                self.tell(f"Following {queue.name}; Ctrl-C ends it.")
            while True:
                time.sleep(_SHORTEST if before.snapshot is not None else _POLL)
                if before.snapshot is not None:
                    store.wait_for_change(before.snapshot, timeout=_LONGEST - _SHORTEST)
                now = queue_diff.look(store, queue, change=before.change)
                if now is None:
                    continue
                tell(queue, before, now)
                self.stdout.flush()
                before = now

    def _lines(self, queue: AnyQueue, before: QueueLook, now: QueueLook) -> None:
        at = f"{now.at:%H:%M:%S.%f}"[:-3]
        told = queue_diff.changes(before, now, find=queue.find, most=_MOST)
        for event in told.events:
            self.stdout.write(f"{at} {_line(event)}")
        if told.more:
            more = ", ".join(f"{write.number(n)} {done_words(verb)}" for verb, n in told.more.items())
            self.stdout.write(f"{at} {write.ELLIPSIS} {more}" + (" more" if told.events else ""))
        if now.pause != before.pause:
            pause = now.pause
            what = "resumed" if pause is None else f"paused by {visible(pause.by)}: {write.one_line(pause.reason)}"
            self.stdout.write(f"{at} {what}")

    def _shapes(self, queue: AnyQueue, before: QueueLook, now: QueueLook) -> None:
        told = queue_diff.changes(before, now, find=queue.find, most=_MOST)
        shared: Shape = {"queue": queue.name, "at": time_shape(now.at)}
        for event in told.events:
            shape = item_shape(event.item)
            if event.item.truncated and not event.item.hidden:
                shape |= {"value": None}
                shape.pop("value_base64", None)
            self.stdout.write(json_text({**shared, "event": event.what, "verb": event.verb or None, "item": shape}))
        if told.more:
            self.stdout.write(json_text({**shared, "event": "more", "items": dict(told.more)}))
        if now.pause != before.pause:
            self.stdout.write(json_text({**shared, "event": "pause", "pause": pause_shape(now.pause, now.at)}))


def _line(event: Event) -> str:
    """Write what happened to an item: the word, its priority, its id, and its value or why."""
    item, what = event.item, done_words(event.verb) if event.what == "gone" and event.verb else event.what
    log = item.attempt_log
    why = f": {write.one_line(log[-1].error if log and log[-1].error else item.reason)}".rstrip(": ")
    more = {
        "leased": f"by {visible(item.worker)}",
        "released": f"{item.state}, attempt {item.attempts}{why}",
        "dead": f"after attempt {item.attempts}{why}",
    }.get(event.what)
    due = f"delayed, due {write.moment(item.due_at)}: " if item.state == "delayed" else ""
    value = due + foreign.preview(item, NOTHING, _VALUE_WIDTH) if more is None else more
    return f"{what:<12} {foreign.priority_short(item):>8}  {item.id}  {value}"
