"""`pqadmin show`: one item by its id, with its value, its attempts and what people did to it."""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from django.core.management.base import CommandError

from pqadmin.commands.arguments import QUEUE, RAW, Argument
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console, print_attempts
from pqadmin.commands.take_options import write_raw
from pqadmin.display import format as write
from pqadmin.display import items as foreign
from pqadmin.display.format import visible
from pqadmin.display.values.hex_dump import dump
from pqadmin.display.words import verb_words
from pqadmin.files.shapes import item_shape, time_shape
from queues import AuditEntry, Item, Store
from queues.admin import Codec
from queues.errors import BadValue, ItemNotFound, Undecodable

#: Bytes of a binary value that are shown, and actions of people.
_HEX, _ACTIONS = 512, 20


class Command(StoreCommand):
    """Show one item in whatever state, or finished: its value, its last attempts, and what people did to it."""

    arguments = (QUEUE, Argument("id", metavar="ID"), RAW)

    def run(self, store: Store, options: Options) -> None:
        """Show the item."""
        if options["raw"] and options["json"]:
            raise CommandError("--raw writes the value and nothing else: leave out --json and --jsonl.")
        queue = store.queue(options["queue"])
        item = queue.find(options["id"])
        if item is None and not options["raw"]:  # a record has the beginning of the value
            item = queue.find_finished(options["id"])
        if item is None:
            raise ItemNotFound("{queue} has no item {id}.", queue=queue.name, id=options["id"])
        if options["raw"]:
            if item.hidden:
                raise CommandError("The server hides parts of this value: --raw cannot write the whole value.")
            write_raw([item.raw])
            return
        if options["json"]:
            shape = item_shape(item)
            if item.finished_at is not None:
                shape |= {"finished_at": time_shape(item.finished_at), "truncated": item.truncated}
            self.answer({"queue": queue.name, "item": shape})
            return
        now = store.now()
        for name, text in _facts(item, now):
            self.stdout.write(f"{name + ':':<11}{text}")
        self.stdout.write("\n".join(["", *_value_lines(item), ""]))
        print_attempts(console(self.stdout), item)
        for entry in reversed(store.audit.entries(queue=queue.name, item=item.id, limit=_ACTIONS).entries):
            self.stdout.write(_action_line(entry))


def _facts(item: Item, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield what is known of an item, but its value and its attempts, by its name."""
    yield "Item", item.id
    yield "State", item.state
    if item.priority is not None or item.foreign is not None:
        yield "Priority", foreign.priority(item)
    if item.foreign is not None:
        yield "Key", foreign.key(item, 200)
    times = (
        ("Pushed", item.pushed_at),
        ("Ready", item.ready_at if item.ready_at != item.pushed_at else None),
        ("Due", item.due_at),
        ("Until", item.expires_at),
        ("Died", item.died_at),
        ("Finished", item.finished_at),
    )
    for name, at in times:
        if at is not None:
            left = (at - now).total_seconds()
            yield name, f"{write.moment(at)}, {f'in {write.age(left)}' if left > 0 else f'{write.age(-left)} ago'}"
    for name, text in (("Worker", item.worker), ("Reason", item.reason)):
        if text:
            yield name, write.one_line(text)
    if item.attempts:
        yield "Attempts", write.number(item.attempts)
    yield "Size", write.size(item.size)


def _value_lines(item: Item) -> list[str]:
    """Return a value in lines: decoded by its codec, as text, or as a dump of its first bytes."""
    if item.codec is not None and item.codec.name in ("json", "msgpack"):
        with suppress(Undecodable, BadValue):
            shape = json.loads(Codec("json", "").encode(item.value))
            return [visible(line) for line in json.dumps(shape, indent=2, ensure_ascii=False).split("\n")]
    kept = f"{write.ELLIPSIS} the first {write.number(len(item.raw))} of {write.number(item.size)} bytes are kept"
    more = [kept] if item.truncated else []
    text = write.as_text(item.raw, cut=item.truncated)
    if text is not None:
        return [*(visible(line) for line in text.split("\n")), *more]
    rest = len(item.raw) - _HEX
    if rest > 0:
        more = [f"{write.ELLIPSIS} {write.number(rest)} more bytes; --raw writes all of them"]
    return [*dump(item.raw[:_HEX]).rstrip().split("\n"), *more]


def _action_line(entry: AuditEntry) -> str:
    reason = f": {write.one_line(entry.reason)}" if entry.reason else ""
    return f"{write.moment(entry.at)} {visible(entry.actor)} ({visible(entry.via)}) {verb_words(entry.verb)}{reason}"
