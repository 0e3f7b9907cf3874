"""Settings over HTTP: what changed is returned as the record of the config."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from queues.model.config import Config
from queues.model.settings import check_settings
from queues.operations.configure import ConfigureRequest, PauseRequest
from queues.operations.open_queue import OpenQueue
from queues.remote.connection import Connection
from queues.remote.delivery import over_http
from queues.remote.shapes import text_of
from queues.remote.verbs import call_on


@over_http(PauseRequest)
async def pause(connection: Connection, queue: OpenQueue, request: PauseRequest, key: str) -> bytes:
    """Pause, or resume without a pause."""
    wanted = request.pause
    if wanted is None:
        await connection.send(call_on(queue, "POST", "resume", key=key))
    else:
        body = {"reason": wanted.reason, "until": text_of(wanted.until)}
        await connection.send(call_on(queue, "POST", "pause", body=body, key=key))
    return replace(queue.config, pause=wanted).encode()


@over_http(ConfigureRequest)
async def configure(connection: Connection, queue: OpenQueue, request: ConfigureRequest, key: str) -> bytes:
    """Change settings."""
    answer = await connection.send(call_on(queue, "PATCH", body=request.changes, key=key))
    return changed(queue.config, answer).encode()


def changed(config: Config, answer: Mapping[str, Any]) -> Config:
    """Return a config with the settings that a server answers."""
    return replace(config, **check_settings(config, answer["settings"]))
