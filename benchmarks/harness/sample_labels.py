"""The colors that the queues of the sample load must have, labeled by hand, and what a recording shows instead.

The labels follow from what the load does to each queue, in 33 queues, never from what the product says of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

#: Seconds within which a verdict must be right, and within which a slow leak must be told.
_SOON, _LEAK = 120.0, 900.0
#: Seconds until a verdict is on a screen: the recorder's look, a frame, and the pause between two recordings.
_SHOWN = 3.0


class Label(NamedTuple):
    """From a second of the load on, a queue has this level; within so many seconds it is shown."""

    since: float
    level: str
    within: float
    #: What happens to the queue.
    why: str


class Shown(NamedTuple):
    """What a row showed at a second of the load: the level that its shape is painted as, and the one in words."""

    at: float
    queue: str
    painted: str
    word: str


class Wrong(NamedTuple):
    """A time in which a row showed what no label allows."""

    queue: str
    first: float
    last: float
    shown: str
    right: str


#: Served 1.5 times as fast as it fills, by one worker: all queues but those below.
SERVED: Sequence[Label] = (Label(0, "ok", 0, "taken 1.5 times as fast as pushed"),)
LABELS: Mapping[str, Sequence[Label]] = {
    "demo:orders:apac:payments": (
        Label(0, "ok", 0, "taken 1.5 times as fast as pushed"),
        Label(30, "critical", _SOON, "no process takes from second 30 on, and 3 items a second come"),
    ),
    "demo:mail:outbound": (Label(0, "warning", _SOON, "handlers fail on 40 %: after three attempts items are dead"),),
    "demo:orders:eu:fulfilment": (Label(0, "warning", _SOON, "grows by 23 items a minute"),),
    "demo:orders:apac:refunds": (Label(0, "warning", _LEAK, "grows by 8 items a minute, within larger noise"),),
    "demo:labels:print": (Label(0, "warning", _LEAK, "grows by 7 items a minute, within larger noise"),),
    "demo:orders:eu:payments:002": (Label(0, "warning", _LEAK, "grows by 4 items a minute, within larger noise"),),
}


def right(queue: str, at: float) -> Sequence[str]:
    """Return the levels that may be shown at a second of the load: two while a change may not be noticed yet."""
    labels = LABELS.get(queue, SERVED)
    last = max((n for n, label in enumerate(labels) if label.since <= at), default=0)
    label = labels[last]
    if at - label.since >= (label.within + _SHOWN if label.within else 0):
        return (label.level,)
    before = labels[last - 1].level if last else "ok"
    # On the way to critical there is a warning.
    return tuple(dict.fromkeys((before, *(("warning",) if label.level == "critical" else ()), label.level)))


def wrong(recording: Iterable[Shown]) -> Sequence[Wrong]:
    """Return the times in which a color, or a word, was not right."""
    found: dict[tuple[str, str, str], Wrong] = {}
    for at, queue, painted, word in recording:
        allowed = right(queue, at)
        if painted in allowed and word == painted:
            continue
        shown = painted if word == painted else f"{painted}, in words {word}"
        key = (queue, shown, " or ".join(allowed))
        first = found[key].first if key in found else at
        found[key] = Wrong(queue, first, at, shown, key[2])
    return list(found.values())
