"""Subscription of one wall: the newest picture wins, and at most two frames are under way."""

from pqadmin.accounts.scope import Scope
from pqadmin.live.board.consistent_cuts import Cut
from pqadmin.live.subscription import Subscription
from pqadmin.live.ticks import Tick, view_of
from pqadmin.wall import frame_json
from pqadmin.wall.picture import Picture

_TOPIC = "wall"


class WallSubscription(Subscription):
    """The picture of one wall, and what it must still receive."""

    def __init__(self, now: float, scope: Scope) -> None:
        super().__init__(now, scope)
        self.picture: Picture | None = None
        self._head = ""
        self._told = ""
        self._rows: dict[int, str] = {}

    @property
    def single(self) -> bool:
        """Say that the items of no queue are on the screen."""
        return False

    def show_picture(self, picture: Picture) -> None:
        """Show these queues in these places from the next frame on."""
        self.topic, self.picture = _TOPIC, picture
        self._view = view_of(_TOPIC, frozenset(picture.ids), frozenset(), self.sight)
        self._head = frame_json.head(picture)

    def resync(self) -> None:
        """Owe a whole frame."""
        super().resync()
        self._rows, self._told = {}, ""

    def take(self, tick: Tick | None, *, now: float, wall: float, as_of: int = 0) -> tuple[bytes, bytes] | None:
        """Return the next frame, or None when nothing is due or two are in flight."""
        if self._trouble is not None:
            return super().take(tick, now=now, wall=wall, as_of=as_of)
        if self.waits or self.topic is None or self.hidden or tick is None:
            return None
        if tick.number == self._since and self._told == self._head:
            return None
        cut = tick.covering(self.ids, ends=False)
        if cut is None:
            return None
        self._since = tick.number
        rows = self._of(cut)
        changed = [rows[queue_id] for queue_id in sorted(rows) if self._rows.get(queue_id) != rows[queue_id]]
        if not changed and self._told == self._head:
            return None
        full, self._rows, self._told = not self._told, rows, self._head
        text = frame_json.frame(
            self._send(now), full=full, version=cut.version, at=cut.at, now=wall, rows=changed, head=self._head
        )
        return text.encode(), b""

    def _of(self, cut: Cut) -> dict[int, str]:
        """Return the rows of what is on the screen; without those that are gone, or renamed out of sight."""
        sees = self.sight.sees
        return {
            queue_id: frame_json.row(cut.rows[queue_id])
            for queue_id in self.ids
            if queue_id in cut.rows and sees(cut.names[queue_id])
        }
