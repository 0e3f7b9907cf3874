"""What answers about items, jobs and records hold, for the schema; the shapes are made in `pqadmin.files.shapes`."""

from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

Text = Annotated[str, Field(description="Text.")]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Priority = int | float | str | None


class Problem(Schema):
    """A problem (RFC 9457); more members are those of its type."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    suggestions: list[str] = Field([], description="Names of queues that look alike.")


class ProblemType(Schema):
    """What a type of problem means."""

    type: str
    title: str
    status: int
    code: str
    meaning: str


class Made(Schema):
    """An item that was pushed."""

    id: str
    priority: Priority
    count: int | None
    state: str
    pushed_at: Time | None
    due_at: Time | None


class Attempt(Schema):
    """An attempt of an item that ended without an acknowledgement."""

    number: int
    worker: str | None
    began_at: Time
    ended_at: Time
    expired: bool
    died: bool
    error: str | None
    traceback: str | None


class Item(Made):
    """An item. Its value is `value`, or `value_base64` where it is no plain text; JSON and msgpack are decoded too."""

    ready_at: Time | None
    size: int
    attempts: int
    leased_at: Time | None
    expires_at: Time | None
    worker: str | None
    died_at: Time | None
    reason: str | None
    attempt_log: list[Attempt]
    key: str | None = Field(description="The key of an item of an attached queue.")
    value: str = Field("", description="The value, if it is plain text.")
    value_base64: str = Field("", description="The value in base64, if it is not plain text.")
    value_json: Any = Field(None, description="The value as the codec of the queue decodes it, if JSON has all of it.")


class ItemSeen(Item):
    """An item that is looked at; rules of redaction hide parts of its value."""

    value_redacted: str = Field("", description="The value with marks for hidden parts, in place of those three.")


class ItemPicked(ItemSeen):
    """An item that is looked at, with what tells whether it is as it was."""

    etag: str = Field(description="The same as in the header.")


class ItemListed(ItemSeen):
    """An item of a list, with a value that may be cut."""

    truncated: bool


class Finished(ItemListed):
    """What a queue keeps of an item: its `state` says if it was `acknowledged` or `popped`, by that `worker`."""

    finished_at: Time


class Leased(Item):
    """An item that is held for a time."""

    lease: str = Field(description="The token of the lease, for ack, release and extend.")


class Pushed(Schema):
    """The items that were pushed, in their order."""

    items: list[Made]


class BadLine(Schema):
    """A line that was left out."""

    line: int
    reason: str


class Imported(Schema):
    """How far a stream was pushed."""

    items: int
    bad: int
    blank: int
    last_line: int
    errors: list[BadLine] = Field(description="The first hundred bad lines.")


class ChunkPushed(Schema):
    """A chunk that was pushed."""

    queue: str
    items: int
    last_line: int


class Lines(Schema):
    """Lines of NDJSON or CSV."""


class ItemKept(Item):
    """An item that was taken, and what the trash keeps of it."""

    trash_id: str | None = Field(description="For undo; null if the trash keeps nothing.")


class TakenKept(Schema):
    """The items that were taken into the trash, the first to leave first."""

    items: list[ItemKept]


class Taken(Schema):
    """The items that were taken, the first to leave first."""

    items: list[Item]


class LeasesTaken(Schema):
    """The items that are held, the first to leave first."""

    items: list[Leased]


class Peeked(Schema):
    """The items of one end."""

    items: list[ItemSeen]


class ItemPage(Schema):
    """A page of items."""

    items: list[ItemListed]
    next: str | None = Field(description="Where the next page begins; null: this is the last.")
    searched: int = Field(description="Items that were looked at up to here.")


class FinishedPage(Schema):
    """A page of finished items."""

    items: list[Finished]
    next: str | None = Field(description="Where the next page begins; null: this is the last.")


class ItemHeld(Item):
    """An item that was leased; without its value, unless that was asked for."""


class Result(Schema):
    """The outcome of one lease."""

    lease: str
    done: bool
    problem: Problem | None = None
    item: ItemHeld | None = None
    expires_at: Time | None = None


class Results(Schema):
    """The outcome of each lease, in their order."""

    results: list[Result]


class Changed(Schema):
    """What was changed, and how it is undone."""

    queue: str
    items: int
    skipped: int
    trash_id: str | None = Field(description="For undo; null where nothing was changed.")


class Job(Schema):
    """A bulk job and its progress."""

    job: str
    act: str
    state: str
    queue: str
    queue_id: int
    to: str | None
    to_id: int | None
    query: dict[str, Any] | None
    status: str
    total: int | None
    met: int
    items: int
    skipped: int
    by: str
    reason: str
    rate: float | None
    speed: float | None
    seconds_left: float | None
    began_at: Time | None
    started_at: Time | None
    ended_at: Time | None
    runner: str | None
    failure: str | None
    failed_at: str | None
    undoes: str | None
    undone_by: str | None


class Jobs(Schema):
    """A page of jobs."""

    jobs: list[Job]
    next: str | None


class Survey(Schema):
    """What an act on all would meet."""

    queue: str
    matched: int
    searched: int | None
    depth: int
    ended: bool = Field(description="All items were looked at, so `matched` is exact.")
    sample: list[ItemListed]


class Act(Schema):
    """An act of a person or a program."""

    at: Time
    actor: str
    via: str
    verb: str
    queue: str | None
    item: str | None
    count: int
    reason: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    id: str


class AuditPage(Schema):
    """A page of the audit."""

    entries: list[Act]
    next: str | None


class TrashEntry(Schema):
    """What an act removed or changed."""

    id: str
    what: str
    queue: str | None
    item: str | None
    items: int
    by: str
    action: str | None
    to: str | None
    at: Time
    deadline: Time
    restored: bool
    damage: str | None


class TrashPage(Schema):
    """A page of the trash."""

    entries: list[TrashEntry]
    next: str | None


class Undone(Schema):
    """What an undo did, or began."""

    queue: str
    items: int
    skipped: int
    item: str | None
    trash_id: str | None
    job: Job | None


class Hit(Schema):
    """An item that was found."""

    queue: str
    item: ItemListed


class Hits(Schema):
    """What a step of a search found."""

    hits: list[Hit]
    searched: int
    unreadable: list[str]
    next: str | None


class DeadOfError(Schema):
    """Dead items with errors that differ only in ids, numbers and values."""

    error: str
    items: int
    first_died_at: Time
    last_died_at: Time
    sample: str = Field(description="The id of the item that died last.")


class DeadErrors(Schema):
    """Dead items by error, the most frequent first."""

    queue: str
    errors: list[DeadOfError]
    searched: int
    next: str | None
