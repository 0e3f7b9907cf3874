"""The wire format from client to server, with all its checks."""

import json
import re
from typing import Annotated

import msgspec
from msgspec import Meta

#: Bytes of one message; 500 ids fit several times over.
MAX_MESSAGE = 32_768
#: Queues that one screen may hold.
MAX_SCREEN = 500
#: Characters of a topic: a name has at most 200.
_MAX_TOPIC = 260
_MAX_ID_DIGITS = 20
#: Characters of a filter.
MAX_FILTER = 400
#: Groups that one screen may hold sums of, and characters of their names as shown: each may be written as an escape.
MAX_GROUPS, _MAX_LABEL = 200, 2_000

OVERVIEW = "overview"
QUEUE = "queue:"


class BadRequest(Exception):
    """A malformed message; `code` is for programs, the text for people."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


#: A queue's id as text, since JavaScript's numbers lose digits; a group's name; the number of a frame.
QueueId = Annotated[str, Meta(pattern=rf"^[0-9]{{1,{_MAX_ID_DIGITS}}}$")]
Label = Annotated[str, Meta(max_length=_MAX_LABEL)]
Number = Annotated[int, Meta(ge=0, lt=2**53)]


class Watch(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="watch"):
    """The screen shows this topic: for the overview these queues, and new ones too if `grow`.

    `complete` says that the screen means to show every queue there is; with a `filter`, every queue that passes it.
    """

    topic: Annotated[str, Meta(max_length=_MAX_TOPIC)] = ""
    queues: tuple[QueueId, ...] = ()
    grow: bool = False
    complete: bool = False
    filter: Annotated[str, Meta(max_length=MAX_FILTER)] = ""
    #: Labels of groups with shown sums.
    groups: tuple[Label, ...] = ()

    @property
    def ids(self) -> frozenset[int]:
        """Return the ids of the queues."""
        return frozenset(map(int, self.queues))

    @property
    def queue(self) -> str | None:
        """Return the name of the one queue that is watched; None for the overview."""
        return self.topic.removeprefix(QUEUE) if self.topic.startswith(QUEUE) else None


class Ack(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="ack"):
    """The client has shown everything up to this frame."""

    seq: Number


class Resync(msgspec.Struct, frozen=True, tag_field="t", tag="resync"):
    """The client missed something and wants a whole frame."""


class Visible(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="visible"):
    """The tab was shown (True) or hidden: a hidden one gets no frames."""

    visible: bool


Request = Watch | Ack | Resync | Visible
_decode = msgspec.json.Decoder(Request).decode


def parse(text: str) -> Request:
    """Read one message; raise `BadRequest`."""
    if len(text) > MAX_MESSAGE or len(text.encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
        raise BadRequest("too-large", f"A message has at most {MAX_MESSAGE:,} bytes.")
    try:
        if "\\u" in text or not text.isascii():
            json.dumps(json.loads(text), ensure_ascii=False).encode()  # no text may hold half of a surrogate pair
        request: Request = _decode(text)
    except UnicodeEncodeError:
        raise BadRequest("bad-text", "A text holds half of a surrogate pair.") from None
    except msgspec.ValidationError as error:
        raise BadRequest(_code(str(error)), f"{error}.") from None
    except (ValueError, RecursionError):
        raise BadRequest("not-json", "A message is one JSON object.") from None
    if isinstance(request, Watch):
        _check(request)
    return request


def _code(error: str) -> str:
    """Return the code of a validation error by the field that it names."""
    found = re.search(r"`\$\.(\w+)", error)
    if found is not None:
        return {"t": "unknown-message", "topic": "unknown-topic"}.get(found[1], "bad-field")
    return "unknown-message" if "`t`" in error else "bad-field" if "required" in error else "not-json"


def _check(watch: Watch) -> None:
    if watch.topic != OVERVIEW and (not watch.queue or "\0" in watch.topic):
        raise BadRequest("unknown-topic", "A topic is “overview” or “queue:NAME”.")
    if len(watch.queues) > MAX_SCREEN:
        raise BadRequest("too-many", f"A screen holds at most {MAX_SCREEN} queues.")
    if len(watch.groups) > MAX_GROUPS:
        raise BadRequest("too-many", f"A screen holds at most {MAX_GROUPS} groups.")
