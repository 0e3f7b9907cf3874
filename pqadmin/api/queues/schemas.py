"""What answers about queues hold, for the schema."""

from typing import Any

from ninja import Schema
from pydantic import Field

from pqadmin.api.schemas import ItemListed, Priority, Time


class Reason(Schema):
    """A reason of a verdict."""

    code: str
    level: str
    since: Time
    value: float | None
    limit: float | None
    until: Time | None = Field(
        description="When a stall, growth, or being full ended of which the level holds for a while."
    )


class Verdict(Schema):
    """What is to be said of a queue."""

    level: str = Field(description="critical, warning, unknown or ok.")
    since: Time
    reasons: list[Reason]
    trend: str
    clears_in: float | None
    grows_by: float | None


class Consumer(Schema):
    """A process that takes from a queue."""

    pid: int
    host: str
    program: str
    worker: str | None
    since: Time | None
    last_take: Time | None
    takes: int
    rate: float
    waiting: int
    holds: int
    heard: Time | None
    end: str | None


class Consumers(Schema):
    """The processes that take from a queue."""

    queue: str
    consumers: list[Consumer] | None
    last_consumer: Consumer | None


class Pause(Schema):
    """Why taking has stopped."""

    reason: str
    by: str
    since: Time
    until: Time | None


class QueueMade(Schema):
    """A queue without its items."""

    queue: str
    id: int = Field(description="The same through renames.")
    kind: str
    priority_type: str | None
    codec: str
    prefix: str | None


class Queue(Schema):
    """A queue, its depths, ends and verdict; of one that cannot be read, only the name, the reason and the verdict."""

    id: int = Field(description="The same through renames.")
    change: int = Field(description="Differs when the queue was changed.")
    queue: str
    kind: str | None
    priority_type: str | None
    codec: str | None
    ready: int | None
    delayed: int | None
    leased: int | None
    dead: int | None
    arrived: int | None
    left: int | None
    oldest: Time | None
    min_priority: Priority
    max_priority: Priority
    consumers: list[Consumer] | None
    last_consumer: Consumer | None
    pause: Pause | None
    closed: bool | None
    rate_in: float | None
    rate_out: float | None
    prefix: str | None
    counted_at: Time | None
    unreadable: str | None
    verdict: Verdict
    next_due: Time | None
    next_expiry: Time | None
    note: str
    runbook: str
    drift: bool = Field(description="Counters and items were seen to disagree.")
    staging: bool = Field(description="One process executes the pops of all.")
    min: ItemListed | None = Field(description="The first item of this end, if asked for.")
    max: ItemListed | None = Field(description="The first item of this end, if asked for.")


class QueueInFull(Queue):
    """A queue with its settings."""

    settings: dict[str, Any]


class Queues(Schema):
    """A page of queues, by name."""

    queues: list[Queue]
    next: str | None
    at: Time


class Grant(Schema):
    """A role on the queues that a pattern matches."""

    queues: str
    role: str


class StoreOfCaller(Schema):
    """The store of a site, as a caller meets it."""

    id: str
    at: Time = Field(description="The store's time.")
    caller: str
    verbs: list[str]
    role: str = Field(description="On all queues.")
    grants: list[Grant] = Field(description="Roles on the queues of a pattern.")
    within: list[str] = Field(description="Of a token: the patterns to which its grants are restricted, if to any.")


class QueueDescription(QueueMade):
    """What a program needs to know of a queue before it uses it."""

    bands: list[Priority] = Field(description="The edges of the priority mix.")
    pause: Pause | None
    settings: dict[str, Any] | None = Field(description="Null for a caller that may not read.")


class Outlook(Schema):
    """Whether there is something to take from a queue."""

    queue: str = Field(description="The name that was asked for.")
    id: int
    ready: int = Field(description="About how many items can be taken now; none while taking is paused.")


class Outlooks(Schema):
    """What can be taken from some queues now."""

    queues: list[Outlook]


class QueueLook(Schema):
    """The counters of a queue and the items near its ends, at one version."""

    queue: str
    at: Time
    change: int
    traffic: dict[str, int] | None = Field(description="Items by verb since the queue was created.")
    items: list[ItemListed] | None = Field(description="Null: the queue is as it was at the change.")
    whole: bool | None = Field(description="Every item is among these.")
    pause: Pause | None


class Settings(Schema):
    """All settings of a queue."""

    settings: dict[str, Any]


class Trashed(Schema):
    """What was put into the trash."""

    trash_id: str


class Done(Schema):
    """It was done."""

    queue: str


class Purged(Schema):
    """What was put into the trash."""

    queue: str
    items: int
    skipped: int
    trash_ids: list[str]
    finished: bool


class Averages(Schema):
    """Items a second that programs push and take: averages of 1, 5 and 15 minutes that decay like load averages."""

    pushed: list[float]
    taken: list[float]


class HealthOf(Schema):
    """The verdict on a queue."""

    queue: str
    verdict: Verdict
    rate_in: float | None
    rate_out: float | None
    averages: Averages | None
    at: Time


class Point(Schema):
    """A queue at a moment."""

    at: Time
    ready: int
    delayed: int
    leased: int
    dead: int
    arrived: int
    left: int
    oldest_at: Time | None
    waits_ms: list[int] | None
    mix: list[int]
    gap: bool


class Sums(Schema):
    """What all queues together held and did."""

    resolution: str
    before: Point | None
    points: list[Point]
    damaged: list[Time]


class History(Sums):
    """What a queue held and did."""

    queue: str


class LastDay(Schema):
    """Shares of the last 24 hours."""

    in_breach: float
    unknown: float


class Target(Schema):
    """A limit, and where it comes from."""

    limit: float
    origin: str = Field(alias="from")
    pattern: str | None
    last_24_h: LastDay


class QueueTargets(Schema):
    """The limits of a queue."""

    queue: str
    targets: dict[str, Target]


class PatternTargets(Schema):
    """The limits of a pattern."""

    pattern: str
    targets: dict[str, float]


class TargetsUnreadable(Schema):
    """A pattern with limits that cannot be read."""

    pattern: str = Field(description="Empty: the defaults.")
    reason: str


class Targets(Schema):
    """The defaults and the patterns."""

    defaults: dict[str, float]
    patterns: list[PatternTargets]
    unreadable: list[TargetsUnreadable] = Field(description="They set nothing; told to those that see all queues.")


class QueuesOfGroup(Schema):
    """The queues of a group that were changed."""

    group: str
    queues: list[str]


class PushTemplate(Schema):
    """A push form that was kept under a name."""

    id: int
    name: str
    by: str
    at: Time


class PushTemplateInFull(PushTemplate):
    """A push form with its fields."""

    fields: dict[str, str] = Field(description="As they were typed.")


class PushTemplates(Schema):
    """The push templates of a queue, by name."""

    templates: list[PushTemplate]


class SampleLoad(Schema):
    """Whether the sample load runs."""

    running: bool
    ends_at: Time | None


class SampleLoadStarted(Schema):
    """The sample load runs."""

    seconds: float = Field(description="After which it ends by itself.")


class SampleLoadStopped(Schema):
    """The sample load has ended."""

    stopped: bool = Field(description="False: none ran.")
