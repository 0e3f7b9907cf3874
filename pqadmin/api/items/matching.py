"""Which items a request means: a state, and the filters of a search."""

from typing import Literal

from pydantic import Field, StrictBool, StrictStr

from pqadmin.api.bodies import Body
from pqadmin.api.values import Moment, PriorityField
from queues import Query

State = Literal["ready", "delayed", "leased", "dead"]
#: Bytes of each value of a list by default.
PREVIEW = 1_000


class Matching(Body):
    """Which items of a state are meant: those that fit in every respect that is named."""

    state: State = Field("ready")
    match: StrictStr = Field("", description="A part of the value, or of why an item is dead.")
    field: StrictStr = Field("", description="A path such as `customer.id`: `match` is looked for in this field.")
    exact: StrictBool = Field(False, description="The field is `match`; otherwise it contains it.")
    id: StrictStr = Field("", description="An id, or a part of one.")
    error: StrictStr = Field("", description="The group of the errors of dead items.")
    worker: StrictStr = Field("", description="The whole name of the worker that holds leased items.")
    low: PriorityField | None = Field(None, description="The smallest priority, of ready items.")
    high: PriorityField | None = Field(None, description="The largest priority, of ready items.")
    since: Moment | None = Field(None, description="Pushed, or ready, then or later.")
    until: Moment | None = Field(None, description="Pushed, or ready, then or earlier.")

    @property
    def query(self) -> Query:
        """The query of the core."""
        return Query(
            state=self.state,
            text=self.match,
            field=self.field,
            exact=self.exact,
            item_id=self.id,
            error=self.error,
            worker=self.worker,
            low=self.low,
            high=self.high,
            since=self.since,
            until=self.until,
        )
