"""The published schemas of what the sockets say: every message that any test sees is held to them."""

import json
import re
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

Message = dict[str, Any]

LIVE = json.loads(files("pqadmin.live").joinpath("schema.json").read_text("utf-8"))
WALL = json.loads(files("pqadmin.wall").joinpath("schema.json").read_text("utf-8"))
#: One validator a kind: trying all kinds on every message would be most of a test's time.
_LIVE = {
    kind: Draft202012Validator({**LIVE, "$ref": f"#/$defs/{kind}"})
    for kind in (choice["$ref"].rpartition("/")[2] for choice in LIVE["$defs"]["server"]["oneOf"])
}
_WALL = {kind: Draft202012Validator({**WALL, "$ref": f"#/$defs/{kind}"}) for kind in ("hello", "wall")}
CLIENT = Draft202012Validator({**LIVE, "$ref": "#/$defs/client"})

#: What tells rows of idle queues apart; the schema wants any text there.
_OWN = ("name", "shown", "url")
_ID = re.compile(LIVE["$defs"]["id"]["pattern"])
_MOST_ROWS = LIVE["$defs"]["frame"]["properties"]["rows"]["maxItems"]
#: Rows that were found valid, but for what is their own.
_valid: set[str] = set()


def validate(message: Message, *, wall: bool = False) -> None:
    """Hold a message to the schema of the live socket, or of a wall's for what that one says otherwise.

    Of hundreds of rows that differ only by queue the first is validated: each costs milliseconds. Without that a frame
    of 400 rows is validated for seconds, and tests run out of patience on a busy machine.
    """
    kind = message["t"]
    if wall and kind in _WALL:
        _WALL[kind].validate(message)
        return
    rows = message.get("rows") or []
    assert len(rows) <= _MOST_ROWS
    alike = {_alike(row): row for row in reversed(rows)}
    fresh = alike.keys() - _valid
    _LIVE[kind].validate({**message, "rows": [alike[key] for key in fresh]} if rows else message)
    _valid.update(fresh)


def _alike(row: Message) -> str:
    queue = row.get("id")
    own: Message = {key: type(row.get(key)).__name__ for key in _OWN}
    own["id"] = isinstance(queue, str) and _ID.search(queue) is not None
    return json.dumps(row | own)
