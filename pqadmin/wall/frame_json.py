"""JSON of frames for walls: without confidential parts.

The numbers come out of the same consistent cuts as the overview's frames; values, item ids and addresses are left out.
The format is described in docs/how-to/wall.md.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from pqadmin.display import format as write
from pqadmin.live.asset_version import mark
from pqadmin.live.frame_json import whole
from pqadmin.wall.picture import Picture

#: The version of this format; a page that was made for another one loads itself anew.
PROTOCOL = 1
#: Files of the page, with the content's hash in their addresses.
_FILES = ("joined/wall.css", "joined/wall.js")
#: What a tile says of a queue; nothing else of a row leaves the site: no values or ids of items, addresses or people.
_SHOWN = (
    "id", "name", "shown", "kind", "level", "mark", "reasons", "trend", "unreadable", "ready", "delayed", "leased",
    "dead", "in", "out", "clears_in", "grows_by", "oldest", "closed", "drift", "staging",
)  # fmt: skip
_COUNTED = ("queues", "critical", "warning", "unknown", "unread")
_OF_A_PAUSE, _OF_AN_ATTACHED = ("reason", "since", "until"), ("counted",)


@lru_cache(maxsize=1)
def release() -> str:
    """Return a digest of the protocol, the page's files and the version. A screen of another one loads itself anew."""
    return mark(PROTOCOL, *_FILES)


def frame(seq: int, *, full: bool, version: int, at: int, now: float, rows: Iterable[str], head: str) -> str:
    """Join finished texts into one frame. `rows` are those that the page does not have yet."""
    return (
        f'{{"t":"wall","seq":{seq},"full":{"true" if full else "false"},"version":{json.dumps(whole(version))},'
        f'"at":{at},"now":{int(now * 1000)},"rows":[{",".join(rows)}],{head[1:]}'
    )


def head(picture: Picture) -> str:
    """Serialize all of a frame but its numbers."""
    turn, counts, rest = picture.turn, picture.counts, picture.rest
    return _text(
        {
            "revision": picture.revision,
            "part": {
                "name": write.visible(picture.part.name),
                "index": turn.index,
                "of": turn.of,
                "until": None if turn.until is None else int(turn.until * 1000),
                "order": picture.part.order,
                "density": picture.part.density,
            },
            "counts": _only(asdict(counts), _COUNTED),
            "order": [str(queue_id) for queue_id in picture.ids],
            "layout": {
                "wide": list(picture.layout.wide),
                "high": list(picture.layout.high),
                "stress": picture.layout.stress,
            },
            "rest": None if rest is None else {**_only(asdict(rest), _COUNTED), "ready": whole(rest.ready)},
        }
    )


@lru_cache(maxsize=2048)
def row(text: str) -> str:
    """Return the row of an overview's frame as a wall shows it."""
    known: dict[str, Any] = json.loads(text)
    shown = _only(known, _SHOWN)
    if "said" in known:
        shown["said"] = known["said"]
    shown["pause"] = None if known["pause"] is None else _only(known["pause"], _OF_A_PAUSE)
    shown["attached"] = None if known["attached"] is None else _only(known["attached"], _OF_AN_ATTACHED)
    for end in ("min", "max"):
        shown[end] = None if (item := known.get(end)) is None else item["priority"]
    return _text(shown)


def _only(known: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: known[name] for name in names}


def _text(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
