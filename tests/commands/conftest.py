"""What the tests of the commands share: a store that commands reach by URL, and commands called as from a shell."""

import io
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from queues import Queue, Store, open_store

ROOT = Path(__file__).resolve().parents[2]
#: Seconds after which a process that should have done something is a failure; never waited for when all is well.
PATIENCE = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """An open store and the URL under which a command in this process reaches the same one."""

    store: Store
    url: str


@pytest.fixture
def shop(engine: str, tmp_path: Path) -> Iterator[Shop]:
    """A fresh store on each engine."""
    url = f"lmdb:{tmp_path / 'store'}" if engine == "embedded" else f"memory:{uuid.uuid4().hex}"
    with open_store(url) as store:
        yield Shop(store=store, url=url)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store that processes can open, too."""
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def jobs(request: pytest.FixtureRequest) -> Queue:
    """An empty queue of the store that the test uses."""
    in_shop = "shop" in request.fixturenames
    store: Store = request.getfixturevalue("shop").store if in_shop else request.getfixturevalue("store")
    return store.create_queue("jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command printed and how it ended."""

    out: str
    err: str
    code: int
    error: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


Run = Callable[..., Answer]


@pytest.fixture
def run(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call a command on the shop's store: `run("push", "jobs", "text", "--priority=5", stdin=b"")`."""

    def call(command: str, *arguments: str, stdin: bytes | None = None) -> Answer:
        out, err = io.StringIO(), io.StringIO()
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        try:
            call_command(command, *arguments, "--store", shop.url, stdout=out, stderr=err)
        except CommandError as error:
            return Answer(out=out.getvalue(), err=err.getvalue(), code=error.returncode, error=str(error))
        return Answer(out=out.getvalue(), err=err.getvalue(), code=0, error="")

    return call


@contextmanager
def command(
    *arguments: str,
    program: tuple[str, ...] = ("-m", "pqadmin"),
    folder: Path = ROOT,
    text: bool = False,
    **variables: str,
) -> Iterator[subprocess.Popen[Any]]:
    """Start a command as a process of its own; kill it when the test leaves it running."""
    process = subprocess.Popen(
        [sys.executable, *program, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=text,
    )
    try:
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
    finally:
        process.wait(PATIENCE)
