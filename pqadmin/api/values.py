"""Items as the API takes and gives them: new ones from JSON, and those that are seen, with what is hidden left out."""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AwareDatetime, BeforeValidator, Field, StrictFloat, StrictInt, StrictStr, model_validator

from pqadmin.api.bodies import Body, invalid
from pqadmin.api.problems import Problem
from pqadmin.display.error_text import redacted
from pqadmin.display.format import as_text
from pqadmin.display.redaction import Redaction
from pqadmin.display.values import masked, plain
from pqadmin.display.values.decode import look
from pqadmin.files.entries import REDACTED, VALUE_NAMES
from pqadmin.files.plain_text import plain_text
from pqadmin.files.shapes import Shape, attempt_shape, item_shape, job_shape, time_shape
from queues import Duration, Item, Priority, Queue, Raw, Undone
from queues.admin import Codec
from queues.errors import QueueError, WrongKind, display_name

T = TypeVar("T")

#: Items of one request.
MOST = 1_000
#: Seconds of a delay: what a `timedelta` holds.
_LONGEST_DELAY = 86_399_999_999_999.0

PriorityField = StrictInt | StrictFloat | StrictStr


#: How a time begins; a number would be read as seconds since 1970.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]", re.ASCII)


def _only_text(found: object) -> object:
    """Refuse what is no time in ISO 8601."""
    if not isinstance(found, datetime) and not (isinstance(found, str) and _DATE.match(found)):
        raise ValueError("a time is text in ISO 8601 with a zone")  # pydantic asks for it
    return found


Moment = Annotated[AwareDatetime, BeforeValidator(_only_text), Field(strict=False)]


class ValueFields(Body):
    """A value, in one of three forms."""

    value: StrictStr | None = Field(None, description="The value as text, stored as UTF-8.")
    value_base64: StrictStr | None = Field(None, description="The bytes of the value in base64.")
    value_json: Any = Field(None, description="The value as JSON, encoded by the queue's codec.")

    @property
    def has_json(self) -> bool:
        """Whether the value is JSON, null included."""
        return "value_json" in self.model_fields_set

    @property
    def has_value(self) -> bool:
        """Whether there is a value."""
        return self.has_json or self.value is not None or self.value_base64 is not None

    def bytes_for(self, queue: Queue) -> bytes:
        """Return the value as it is stored; raise `BadValue`."""
        value = self.value_for(queue)
        return value if isinstance(value, bytes) else Codec(queue.codec, queue.name).encode(value)

    def value_for(self, queue: Queue) -> Any:
        """Return the value as the queue's verbs take it; raise `BadValue`."""
        if self.value is not None:
            return stored(self.value.encode(), queue)
        if self.value_base64 is not None:
            return stored(from_base64(self.value_base64), queue)
        if queue.codec in ("bytes", "text"):
            return stored(Codec("json", queue.name).encode(self.value_json), queue)
        return self.value_json


class NewItem(ValueFields):
    """An item to push: one of the three values, a priority unless the queue is FIFO, and when it is due."""

    priority: PriorityField | None = Field(None, description="Of the queue's type; none in a FIFO queue.")
    delay: float | None = Field(None, ge=0, le=_LONGEST_DELAY, description="Seconds until it is ready.")
    due_at: Moment | None = Field(None, description="When it becomes ready, ISO 8601 with a zone.")

    @model_validator(mode="after")
    def _one_value(self) -> "NewItem":
        given = {"value", "value_base64", "value_json"} & self.model_fields_set
        if len(given) != 1:
            raise ValueError("exactly one of value, value_base64 and value_json is needed")
        if self.delay is not None and self.due_at is not None:
            raise ValueError("delay and due_at are given together; one of them is needed")
        if not self.has_value:
            raise ValueError(f"{given.pop()} is text, not null")
        return self

    @property
    def when(self) -> Duration | datetime | None:
        """When it is ready, if not at once."""
        return self.due_at if self.delay is None else self.delay


class NewItems(Body):
    """Items that are pushed together: all of them, or none."""

    items: list[NewItem] = Field(min_length=1, max_length=MOST)


def each(items: list[NewItem], check: Callable[[NewItem], T]) -> list[T]:
    """Return what a check makes of each of many items; an error tells the index of the one that it refuses."""
    found: list[T] = []
    try:
        for item in items:
            found.append(check(item))  # noqa: PERF401 # as many as were good before an error
    except QueueError as error:
        error.index = len(found)
        raise
    except Problem as problem:
        at = f"items.{len(found)}."
        raise invalid([{**one, "field": at + one["field"]} for one in problem.values["errors"]]) from None
    return found


def arrival(queue: Queue, item: NewItem) -> tuple[Any, Any, Duration | datetime | None]:
    """Return (value, priority, when) of a new item; raise `WrongKind`, `BadValue`."""
    if queue.kind == "fifo":
        no_priority(queue, item.priority)
        return item.value_for(queue), None, item.when
    return item.value_for(queue), item.priority, item.when


def no_priority(queue: Queue, priority: Priority | None) -> None:
    """Refuse a priority in a FIFO queue."""
    if priority is not None:
        raise WrongKind("{queue} is a fifo queue: its items have no priority.", queue=display_name(queue.name))


def stored(value: bytes, queue: Queue) -> bytes:
    """Return bytes as they are stored; those that the queue's codec cannot decode are refused as they are pushed."""
    return value if queue.codec == "bytes" else Raw(value)


def from_base64(text: str) -> bytes:
    """Return the bytes of base64; raise a problem for other text."""
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise invalid([{"in": "body", "field": "value_base64", "message": "is not base64"}]) from None


def pushed_shape(item: Item) -> Shape:
    """Describe an item that was pushed, without its value."""
    return {
        "id": item.id,
        "priority": item.priority,
        "count": item.count,
        "state": item.state,
        "pushed_at": time_shape(item.pushed_at),
        "due_at": time_shape(item.due_at),
    }


def seen_shape(item: Item, rules: Redaction) -> Shape:
    """Describe an item that is looked at: what rules hide is marked, in its value and in its errors."""
    shape = _seen(item_shape(item), item, rules)
    shown = masked(item.raw, rules)
    if shown != item.raw:
        for name in VALUE_NAMES:
            shape.pop(name, None)
        shape[REDACTED] = shown.decode("utf-8", "replace")
    return shape


def _seen(shape: Shape, item: Item, rules: Redaction) -> Shape:
    """Return the shape with errors as they are shown."""
    if rules:
        shape["reason"] = redacted(item.reason, rules) or None
        shape["attempt_log"] = [
            attempt_shape(one)
            | {"error": redacted(one.error, rules) or None, "traceback": redacted(one.traceback, rules) or None}
            for one in item.attempt_log
        ]
    return shape


def looked_shape(item: Item, rules: Redaction) -> Shape:
    """Describe an item of a list, which may have a cut value: `truncated` says so."""
    if not item.truncated:
        return {**seen_shape(item, rules), "truncated": False}
    shape = {**_seen(item_shape(item), item, rules), "truncated": True}
    for name in VALUE_NAMES:
        shape.pop(name, None)
    if look(item.raw, rules, cut=True).hides:
        return {**shape, REDACTED: plain(item.raw, rules, cut=True).decode("utf-8", "replace")}
    text = plain_text(item.raw.decode("utf-8", "ignore").encode()) if as_text(item.raw, cut=True) is not None else None
    value = {"value_base64": base64.b64encode(item.raw).decode()} if text is None else {"value": text}
    return {**shape, **value}


def undone_shape(undone: Undone) -> Shape:
    """Describe what an undo did, or began."""
    return {
        "queue": undone.queue,
        "items": undone.count,
        "skipped": undone.skipped,
        "item": None if undone.item is None else undone.item.id,
        "trash_id": undone.trash_id,
        "job": None if undone.job is None else job_shape(undone.job),
    }
