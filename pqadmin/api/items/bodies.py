"""What people ask of items: the fields of each act, and which of them belong together."""

from typing import Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from pqadmin.api.bodies import Body
from pqadmin.api.parameters import KeepField, ReasonField
from pqadmin.api.values import MOST, Moment, PriorityField, ValueFields


class Moved(Body):
    """Where items move to."""

    to: StrictStr = Field(description="The name of the other queue.")
    priority: PriorityField | None = Field(
        None, description="The priority that they get there; null: they keep theirs."
    )
    uncover: StrictBool = Field(False, description="Accept that values become visible there that are hidden here.")
    reason: ReasonField


class Patched(ValueFields):
    """One change of an item: its value, its priority or place, or when it is ready."""

    priority: PriorityField | None = None
    shift: PriorityField | None = Field(None, description="A number that is added to the priority.")
    place: Literal["front", "back"] | None = Field(None, description="Bring a ready item to the front or the back.")
    delay: float | None = Field(None, ge=0, description="Seconds until it is ready; a ready item is delayed.")
    due_at: Moment | None = Field(None, description="When it becomes ready; a ready item is delayed.")
    reason: ReasonField

    @model_validator(mode="after")
    def _one_change(self) -> "Patched":
        if len(self.model_fields_set - {"reason"}) != 1:
            raise ValueError("name one change: a value, priority, shift, place, delay or due_at")
        if getattr(self, (self.model_fields_set - {"reason"}).pop()) is None and not self.has_json:
            raise ValueError("the change is null")
        return self


#: The fields that an action takes of those that some actions take.
_TAKES = {
    "move": {"to", "priority", "uncover"},
    "reprioritize": {"priority", "shift", "place"},
    "reschedule": {"delay", "due_at"},
    "delay": {"delay", "due_at"},
    "delete": {"keep"},
}
_OF_SOME = set[str]().union(*_TAKES.values())


def check_action(body: Body, action: str) -> None:
    """Raise ValueError for a field of another action, or a move without its queue."""
    for name in sorted(body.model_fields_set & _OF_SOME - _TAKES.get(action, set())):
        if getattr(body, name) not in (None, False):
            raise ValueError(f"{name} is of another action than {action}")
    if action == "move" and getattr(body, "to", None) is None:
        raise ValueError("to is needed: the name of the other queue")


class PoppedBody(Body):
    """What is taken into the trash."""

    end: Literal["min", "max", "head", "tail"] = Field("min", description="The end; in a FIFO queue `min` is the head.")
    n: StrictInt = Field(1, ge=1, le=MOST, description="How many items at most.")
    keep: KeepField = None
    reason: ReasonField


#: The first item.
ONE = PoppedBody.model_validate({})


class Acted(Body):
    """An act on up to 1,000 items, all of them or none."""

    action: Literal["delete", "move", "reprioritize", "promote", "reschedule", "delay", "retry", "release"]
    ids: list[StrictStr] = Field(min_length=1, max_length=MOST)
    expect: dict[StrictStr, StrictStr] | None = Field(None, description="ETags by id: if one has changed, 412.")
    skip_missing: StrictBool = Field(False, description="Leave out items that are gone, changed or in another state.")
    to: StrictStr | None = Field(None, description="Of a move: the name of the other queue.")
    priority: PriorityField | None = None
    shift: PriorityField | None = None
    place: Literal["front", "back"] | None = None
    delay: float | None = Field(None, ge=0)
    due_at: Moment | None = None
    uncover: StrictBool = False
    keep: KeepField = None
    reason: ReasonField

    @model_validator(mode="after")
    def _of_its_action(self) -> "Acted":
        check_action(self, self.action)
        return self
