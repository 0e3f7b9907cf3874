"""What operators decide about a queue: pause, resume, settings."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from queues.errors import BadTime, NaiveTime, TimePassed
from queues.items.counters import wake
from queues.kv.port import Transaction
from queues.model.config import MAX_REASON, Pause, check_text
from queues.model.ids import LAST_MS, to_ms
from queues.model.settings import Settings, check_settings, check_together, plain
from queues.operations.open_queue import OpenQueue, Request, executes


class PauseRequest(Request[bytes], frozen=True, gc=False):
    """Stop taking; without a pause, let items be taken again."""

    pause: Pause | None


class ConfigureRequest(Request[bytes], frozen=True, gc=False):
    """Change these settings."""

    changes: dict[str, Any]


def pause_request(queue: OpenQueue, *, reason: str, until: datetime | None, by: str) -> PauseRequest:
    """Return the request to pause from now on; raise `NaiveTime`, `TimePassed`, `BadTime`, `BadText`."""
    queue.check_own("it cannot be paused, as other programs would go on taking.")
    if until is not None and not isinstance(until, datetime):
        raise BadTime("The time to resume is a datetime, not {type}.", type=type(until).__name__)
    if until is not None and until.utcoffset() is None:
        raise NaiveTime("The time to resume needs a time zone.")
    now = queue.context.clock.now()
    if until is not None and until <= now:
        raise TimePassed("The time to resume has passed already.")
    if until is not None and to_ms(until) > LAST_MS:  # in another time zone than ours
        raise BadTime("A pause ends before the year 10000.")
    pause = Pause(reason=check_text(reason, MAX_REASON), by=check_text(by), since=now, until=until)
    return PauseRequest(queue.id, pause)


def resume_request(queue: OpenQueue) -> PauseRequest:
    """Return the request to resume; raise `NotForAttached`."""
    queue.check_own("it is never paused.")
    return PauseRequest(queue.id, None)


def configure_request(queue: OpenQueue, changes: Settings) -> ConfigureRequest:
    """Return the request to change settings; raise `BadSetting`, `NotForAttached`."""
    return ConfigureRequest(queue.id, plain(check_settings(queue.config, changes)))


@executes(PauseRequest, ConfigureRequest)
@executes(ConfigureRequest, attached=True)
def configure(queue: OpenQueue, tr: Transaction, requests: Sequence[Any]) -> Sequence[bytes]:
    """Change the config as the first request says, and return its bytes."""
    before = queue.current(tr)
    request = requests[0]
    changes = {"pause": request.pause} if isinstance(request, PauseRequest) else check_settings(before, request.changes)
    config = check_together(replace(before, **changes))
    record = config.encode()
    if config != before:
        tr.use_reserve()
        tr.set(queue.config_key, record)
        wake(tr, queue.keys)
    return [record]
