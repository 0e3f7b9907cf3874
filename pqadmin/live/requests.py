"""The wire format from client to server, with all its checks."""

from __future__ import annotations

import json
from dataclasses import dataclass

#: Bytes of one message; 500 ids fit several times over.
MAX_MESSAGE = 32_768
#: Queues that one screen may hold.
MAX_SCREEN = 500
#: Characters of a topic: a name has at most 200.
_MAX_TOPIC = 260
_MAX_ID_DIGITS = 20
#: Groups whose sums one screen may hold, and characters of their names as shown: each may be written as an escape.
MAX_GROUPS, _MAX_LABEL = 200, 2_000

OVERVIEW = "overview"
QUEUE = "queue:"


class BadRequest(Exception):
    """A malformed message; `code` is for programs, the text for people."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The screen shows this topic: for the overview these queues, and new ones too if `grow`.

    `complete` says that the screen means to show every queue there is.
    """

    topic: str
    ids: tuple[int, ...] = ()
    grow: bool = False
    complete: bool = False
    #: Labels of groups whose sums are shown.
    groups: tuple[str, ...] = ()

    @property
    def queue(self) -> str | None:
        """Return the name of the one queue that is watched; None for the overview."""
        return self.topic.removeprefix(QUEUE) if self.topic.startswith(QUEUE) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """The client has shown everything up to this frame."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resync:
    """The client missed something and wants a whole frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """The tab was shown (True) or hidden: a hidden one gets no frames."""

    visible: bool


Request = Watch | Ack | Resync | Visible


def parse(text: str) -> Request:
    """Read one message; raise `BadRequest`."""
    if len(text) > MAX_MESSAGE or len(text.encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
        raise BadRequest("too-large", f"A message has at most {MAX_MESSAGE:,} bytes.")
    try:
        message = json.loads(text)
        if "\\u" in text or not text.isascii():
            json.dumps(message, ensure_ascii=False).encode()  # no text may hold half of a surrogate pair
    except UnicodeEncodeError:
        raise BadRequest("bad-text", "A text holds half of a surrogate pair.") from None
    except (ValueError, RecursionError):
        raise BadRequest("not-json", "A message is one JSON object.") from None
    if not isinstance(message, dict):
        raise BadRequest("not-json", "A message is one JSON object.")
    match message.get("t"):
        case "watch":
            return _watch(message)
        case "ack":
            return Ack(seq=_whole(message, "seq"))
        case "resync":
            return Resync()
        case "visible":
            return Visible(visible=_flag(message, "visible"))
        case _:
            raise BadRequest("unknown-message", "A message's “t” is watch, ack, resync or visible.")


def _watch(message: dict[str, object]) -> Watch:
    topic = message.get("topic")
    if not isinstance(topic, str) or len(topic) > _MAX_TOPIC or "\0" in topic:
        raise BadRequest("unknown-topic", "A topic is “overview” or “queue:NAME”.")
    if topic.startswith(QUEUE) and topic != QUEUE:
        return Watch(topic=topic)
    if topic != OVERVIEW:
        raise BadRequest("unknown-topic", "A topic is “overview” or “queue:NAME”.")
    ids = message.get("queues", [])
    if not isinstance(ids, list):
        raise BadRequest("bad-field", "“queues” is a list of queue ids.")
    if len(ids) > MAX_SCREEN:
        raise BadRequest("too-many", f"A screen holds at most {MAX_SCREEN} queues.")
    return Watch(
        topic=topic,
        ids=tuple(dict.fromkeys(_id(value) for value in ids)),
        grow=_flag(message, "grow", default=False),
        complete=_flag(message, "complete", default=False),
        groups=_labels(message.get("groups", [])),
    )


def _labels(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and len(one) <= _MAX_LABEL for one in value):
        raise BadRequest("bad-field", "“groups” is a list of groups' names.")
    if len(value) > MAX_GROUPS:
        raise BadRequest("too-many", f"A screen holds at most {MAX_GROUPS} groups.")
    return tuple(dict.fromkeys(value))


def _id(value: object) -> int:
    if isinstance(value, str) and 0 < len(value) <= _MAX_ID_DIGITS and value.isascii() and value.isdigit():
        return int(value)
    raise BadRequest("bad-field", "A queue's id is a text of digits.")


def _whole(message: dict[str, object], field: str) -> int:
    value = message.get(field)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
        return value
    raise BadRequest("bad-field", f"“{field}” is a whole number.")


def _flag(message: dict[str, object], field: str, *, default: bool | None = None) -> bool:
    value = message.get(field, default)
    if isinstance(value, bool):
        return value
    raise BadRequest("bad-field", f"“{field}” is true or false.")
