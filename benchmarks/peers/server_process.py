"""A server in a folder of its own: found, started, waited for, and stopped by its process id."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.peer import Missing

#: Seconds for a server to come up, and to go.
_PATIENCE = 60.0


def program(name: str, package: str, *folders: Path) -> str:
    """Return the path of a program; raise `Missing` with the name of Debian's package that has it."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, folders)]))
    if found is None:
        raise Missing(f"there is no {name}; on Debian: apt-get install {package}")
    return found


def free_port() -> int:
    """Return an unused port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(
    command: Sequence[str], *, log: Path, ready: Callable[[], bool], user: str | None, environment: Mapping[str, str]
) -> Iterator[None]:
    """Run a server until the block ends."""
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdout=output, stderr=output, user=user, env={**os.environ, **environment}, cwd=log.parent
        ) as process,
    ):
        try:
            until = time.monotonic() + _PATIENCE
            while not ready():
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{command[0]} did not start:\n{log.read_text(errors='replace')[-2000:]}")
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
