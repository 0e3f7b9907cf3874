"""The published schemas of what the sockets say: every message that any test sees is held to them."""

import json
import re
from bisect import bisect_left, bisect_right
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
#: The id of an item: of an attached queue it is longer.
_ITEM = re.compile("[0-9a-f]{40}")
_MOST_ROWS = LIVE["$defs"]["frame"]["properties"]["rows"]["maxItems"]
#: The limits of numbers.
_BOUNDS = sorted({int(bound) for bound in re.findall(r"'(?:minimum|maximum)': (-?[0-9]+)", str(LIVE))})
#: The shapes of rows, and of messages without their rows, that were found valid.
_valid: set[str] = set()


def validate(message: Message, *, wall: bool = False) -> None:
    """Hold a message to the schema of the live socket, or of a wall's for what that one says otherwise.

    Of rows and messages of the same shape the first is validated: each costs milliseconds. Without that a frame of 400
    rows is validated for seconds, and tests run out of patience on a busy machine.
    """
    kind = message["t"]
    if wall and kind in _WALL:
        _WALL[kind].validate(message)
        return
    rows = message.get("rows") or []
    assert len(rows) <= _MOST_ROWS
    alike = {_alike(row): row for row in reversed(rows)}
    fresh = alike.keys() - _valid
    rest = {**message, "rows": []} if rows else message
    shape = json.dumps(_shape(rest))
    if fresh or shape not in _valid:
        _LIVE[kind].validate({**message, "rows": [alike[key] for key in fresh]} if rows else message)
    _valid.update(fresh, {shape})


def _alike(row: Message) -> str:
    queue = row.get("id")
    own: Message = {key: type(row.get(key)).__name__ for key in _OWN}
    own["id"] = isinstance(queue, str) and _ID.search(queue) is not None
    return json.dumps(_shape(row | own))


def _shape(value: Any) -> Any:
    """Return a value without what the schema does not tell apart: the digits of texts, and numbers between limits."""
    if isinstance(value, dict):
        return {key: _shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shape(each) for each in value]
    if isinstance(value, str):
        return "an item" if _ITEM.fullmatch(value) else re.sub("[0-9]", "0", value)
    if isinstance(value, bool) or value is None:
        return value
    return {"number": (bisect_left(_BOUNDS, value), bisect_right(_BOUNDS, value), value % 1 == 0)}
