"""RabbitMQ: a durable queue of ten priorities, each push confirmed, through pika. A pop is not flushed."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pika
from pika.exceptions import AMQPError

from benchmarks.peers.peer import Door, Missing
from benchmarks.peers.server_process import free_port, program, server

QUEUE = "jobs"
PRIORITIES = 10
PERSISTENT = 2
#: Where Debian puts it; its program there runs in the foreground as any user.
_HOME = Path("/usr/lib/rabbitmq")
_LOOPBACK = "-kernel inet_dist_use_interface {127,0,0,1}"


#: Starts with other ports, where another process took one of them between the choice and the start.
_TRIES = 3
_IN_USE = re.compile("eaddrinuse|already_used|nodistribution|in use by another")


@dataclass(frozen=True, slots=True)
class RabbitMQ:
    """A running RabbitMQ."""

    door: Door
    facts: str
    #: The port of the management plugin; 0 where it does not run.
    management: int


@contextmanager
def running(folder: Path, environment: Mapping[str, str], *, management: bool = False) -> Iterator[RabbitMQ]:
    """Start RabbitMQ with one empty queue, and perhaps the management plugin; Erlang's register is one of its own."""
    names, broker = program("epmd", "rabbitmq-server"), str(_HOME / "bin" / "rabbitmq-server")
    if not Path(broker).exists():
        raise Missing(f"there is no {broker}; on Debian: apt-get install rabbitmq-server")
    for n in range(1, _TRIES + 1):
        (own := folder / f"start-{n}").mkdir()
        with ExitStack() as stack:
            try:
                peer = stack.enter_context(_started(own, names, broker, environment, management=management))
            except RuntimeError:
                if n == _TRIES or not _IN_USE.search((own / "log").read_text(errors="replace")):
                    raise
                continue
            yield peer
            return


@contextmanager
def _started(
    folder: Path, names: str, broker: str, environment: Mapping[str, str], *, management: bool
) -> Iterator[RabbitMQ]:
    port, management_port = free_port(), free_port() if management else 0
    if management:
        (folder / "plugins").write_text("[rabbitmq_management].")
        (folder / "rabbitmq.conf").write_text(
            f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {management_port}\n"
        )
    own = {
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(free_port()),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"pq-bench-{os.getpid()}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _LOOPBACK,
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
    } | environment
    with (
        server([names], log=folder / "names-log", ready=lambda: True, user=None, environment=own),
        server([broker], log=folder / "log", ready=lambda: _answers(port), user=None, environment=own),
    ):
        with _connected(port) as connection:
            arguments = {"x-max-priority": PRIORITIES}
            connection.channel().queue_declare(QUEUE, durable=True, arguments=arguments)
        release = next((_HOME / "lib").glob("rabbitmq_server-*")).name
        facts = f"{release}, durable queue, publisher confirms, pops not flushed, pika {version('pika')}"
        yield RabbitMQ(Door("rabbitmq", str(port)), facts, management_port)


def _connected(port: int) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, heartbeat=0))


def _answers(port: int) -> bool:
    try:
        with _connected(port):
            return True
    except (AMQPError, OSError):
        return False


class RabbitClient:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._connection = _connected(port)
        self._channel = self._connection.channel()
        self._channel.confirm_delivery()

    def push(self, value: bytes, priority: int) -> None:
        """Add one value; the smallest priority here is the greatest there."""
        turned = PRIORITIES - 1 - priority % PRIORITIES
        self._channel.basic_publish("", QUEUE, value, pika.BasicProperties(delivery_mode=PERSISTENT, priority=turned))

    def pop(self) -> bytes | None:
        """Take the first value."""
        return self._channel.basic_get(QUEUE, auto_ack=True)[2]

    def lease(self) -> int | None:
        """Hold the first value."""
        found = self._channel.basic_get(QUEUE)[0]
        return None if found is None else found.delivery_tag

    def ack(self, lease: int) -> None:
        """Remove a held value for good; no answer comes."""
        self._channel.basic_ack(lease)

    def push_many(self, items: Sequence[tuple[bytes, int]]) -> None:
        """Add values one by one."""
        for value, priority in items:
            self.push(value, priority)

    def depth(self) -> int:
        """Return how many values there are."""
        return self._channel.queue_declare(QUEUE, passive=True).method.message_count

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


class Connections:
    """The connections of one process, one for each of its threads."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: list[RabbitClient] = []

    def client(self) -> RabbitClient:
        """Return one more connection."""
        client = RabbitClient(self._port)
        self._clients.append(client)
        return client

    def close(self) -> None:
        """End them all."""
        for client in self._clients:
            client.close()


def connect(address: str) -> Connections:
    """Reach the broker on this port."""
    return Connections(int(address))
