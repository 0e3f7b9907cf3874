"""Config of a queue: read in every transaction, written by operators only."""

import unicodedata
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, cast, get_args

from queues.errors import BadQueueKind, BadSetting, BadText, BadValue, NewerFormat, QueueNotFound
from queues.model import records
from queues.model.codec import Codec, codec_of
from queues.model.ids import at, to_ms
from queues.model.priority import Priority, PriorityType
from queues.model.records import reading

Kind = Literal["priority", "fifo"]
KINDS: tuple[str, ...] = get_args(Kind)
#: Characters; longer reasons are cut, as configs are read in every transaction and audits are for reading.
MAX_REASON = 500
#: How often an item is leased before it is dead, unless the queue says otherwise.
DEFAULT_ATTEMPTS = 5
#: Categories of control characters and of those that end a line or paragraph.
_CONTROLS = ("Cc", "Zl", "Zp")
MOST_ATTEMPTS = 1_000_000


def check_kind(kind: str) -> Kind:
    """Return the kind's name; raise `BadQueueKind` for one that does not exist."""
    if kind not in KINDS:
        raise BadQueueKind("A queue is of kind priority or fifo, not {kind}.", kind=repr(kind))
    return cast(Kind, kind)


def check_text(text: str, most: int | None = None) -> str:
    """Return a text cut to `most` characters; raise `BadText` for a lone surrogate, `BadValue` for what is no text."""
    if not isinstance(text, str):
        raise BadValue("A reason or a name is text, not {type}.", type=type(text).__name__)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = f"U+{ord(text[error.start]):04X}"
        raise BadText("A text holds {code}, half of a character, which is no text.", code=code) from None
    return text[:most]


def check_worker(name: str, most: int | None = None) -> str:
    """Return a worker's name as `check_text` does, of one line; raise `BadText`, `BadValue`."""
    if not isinstance(name, str):
        raise BadValue("A worker's name is text, not {type}.", type=type(name).__name__)
    if not name.isprintable():
        for char in name:
            if unicodedata.category(char) in _CONTROLS:
                code = f"U+{ord(char):04X}"
                raise BadText("A worker's name holds {code}, a control character or the end of a line.", code=code)
    return check_text(name, most)


def check_attempts(max_attempts: int | None) -> int | None:
    """Return a limit of attempts; raise `BadSetting`."""
    whole = isinstance(max_attempts, int) and not isinstance(max_attempts, bool)
    if max_attempts is not None and not (whole and 1 <= max_attempts <= MOST_ATTEMPTS):
        raise BadSetting(
            "An item is dead after 1 to {most:,} attempts, or never (None), not after {max_attempts}.",
            "max_attempts",
            most=MOST_ATTEMPTS,
            max_attempts=f"{max_attempts!r:.40}",
        )
    return max_attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Pause of a queue: nothing is taken from it."""

    reason: str
    #: The person that paused it; empty when unknown.
    by: str
    since: datetime
    #: When it resumes by itself; None: when a person resumes it.
    until: datetime | None

    def holds(self, now_ms: int) -> bool:
        """Return whether the pause is in force at this time."""
        return self.until is None or now_ms < to_ms(self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One queue's config."""

    id: int
    name: str
    kind: Kind
    priority_type: PriorityType
    #: Live generations, the newest last: pushes go to it, pops take the best head of all. Empty in an attached queue.
    generations: tuple[int, ...]
    #: The largest generation ever used, so that no number in the trash is used again; 0: the newest live one.
    last_generation: int = 0
    #: Added to every push stamp; raised when data moves between stores.
    base: int
    #: Edges of the priority bands; empty in a FIFO queue.
    edges: tuple[Priority, ...]
    pause: Pause | None
    #: Pushing is refused.
    closed: bool
    created_ms: int
    #: Prefix of the items of an attached queue; None: the queue is this store's own.
    prefix: bytes | None = None
    #: How values are encoded: bytes, text, json, msgpack, or a name that a later build wrote.
    codec: str = "bytes"
    #: Number of attempts after which an item is dead; None: never.
    max_attempts: int | None = DEFAULT_ATTEMPTS
    #: The most items, ready and delayed, that pushes may bring; None: no limit.
    max_depth: int | None = None
    #: Size in bytes of the largest value that may be pushed; None: the limit of all queues.
    max_value: int | None = None
    #: Seconds for which finished items are kept; None: not at all. See queues/items/finished.py.
    keep_finished: float | None = None
    #: Limits of its targets that the queue sets itself; None: inherited, 0: off. See queues/model/limits.py.
    target_depth: int | None = None
    target_oldest: float | None = None
    target_wait: float | None = None
    target_dead: int | None = None
    target_no_consumer: float | None = None
    target_growing: float | None = None
    #: What operators should know about the queue.
    note: str = ""
    #: An http or https address, or empty.
    runbook: str = ""
    #: Keys to redact on pages: names or globs.
    redact: tuple[str, ...] = ()
    #: Fields of values that lists of queues show: paths such as customer.id.
    preview: tuple[str, ...] = ()
    #: Fields of later builds of this format: written again as they were read.
    unknown: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def attached(self) -> bool:
        """Whether the items lie in a subspace that other programs write."""
        return self.prefix is not None

    @property
    def attached_prefix(self) -> bytes:
        """The prefix of the items of a queue that is attached."""
        assert self.prefix is not None
        return self.prefix

    @property
    def values(self) -> Codec | None:
        """The codec of the queue's values; None where they are bytes."""
        return codec_of(self.codec, self.name)

    @property
    def limited(self) -> bool:
        """Whether there is a limit of items or of a value's size."""
        return self.max_depth is not None or self.max_value is not None

    @property
    def fifo(self) -> bool:
        """Whether this is a FIFO queue."""
        return self.kind == "fifo"

    def encode(self) -> bytes:
        """Return the config as the store keeps it."""
        return records.encode(self.header())

    def header(self) -> dict[str, Any]:
        """Return the config as plain JSON values. What is as in most queues is left out."""
        values = {
            _STORED.get(field.name, field.name): value
            for field in _FIELDS
            if (value := getattr(self, field.name)) != field.default
        }
        if self.pause is not None:
            until = None if self.pause.until is None else to_ms(self.pause.until)
            pause = {"reason": self.pause.reason, "by": self.pause.by, "since": to_ms(self.pause.since), "until": until}
            values["pause"] = pause
        if self.prefix is not None:
            values["prefix"] = self.prefix.hex()
        return self.unknown | values

    @classmethod
    def decode(cls, record: bytes) -> "Config":
        """Read a config from the store."""
        return cls.from_header(records.decode(record)[0])

    @classmethod
    def of(cls, name: str, record: bytes | None) -> "Config":
        """Read the config of a queue that was found before; raise `QueueNotFound`, `QueueUnreadable`."""
        if record is None:
            raise QueueNotFound(name, gone=True)
        with reading(name):
            return cls.decode(record)

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> "Config":
        """Read a config from plain JSON values."""
        values: dict[str, Any] = {
            field.name: tuple(value) if isinstance(value := header[name], list) else value
            for field in _FIELDS
            if (name := _STORED.get(field.name, field.name)) in header
        }
        if (pause := header["pause"]) is not None:
            until = None if pause["until"] is None else at(pause["until"])
            values["pause"] = Pause(reason=pause["reason"], by=pause["by"], since=at(pause["since"]), until=until)
        if "prefix" in header:
            values["prefix"] = bytes.fromhex(header["prefix"])
        return cls(**values, unknown=records.unknown(header, _KNOWN))


#: The fields that are stored, and their names in the store where those differ.
_FIELDS = tuple(field for field in fields(Config) if field.name != "unknown")
_STORED = {"priority_type": "type", "created_ms": "created"}
_KNOWN = frozenset(_STORED.get(field.name, field.name) for field in _FIELDS)


def decode(record: bytes | None) -> Config | None:
    """Return a config; None when it is absent or unreadable."""
    if record is None:
        return None
    try:
        return Config.decode(record)
    except (NewerFormat, ValueError, KeyError, TypeError):
        return None
