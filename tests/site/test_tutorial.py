"""The tutorial works as it is written: its files, commands and outputs, in order, in a folder of its own."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from queues import open_store
from tests.ports import free_port
from tests.programs import run_to_end
from tests.waiting import await_true

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "jobs-and-workers.md"
BLOCK = re.compile(r"^```(python|sh background|sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Seconds after which a step that has not happened is a failure.
PATIENCE = 180


@contextmanager
def running(
    command: str, folder: Path, environment: dict[str, str], log: str = "terminal.log"
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of a terminal of its own until the end, and press Ctrl-C there."""
    shell = ["bash", "-c", f"exec env {command}"]
    with (
        (folder / log).open("ab") as told,
        subprocess.Popen(shell, cwd=folder, env=environment, stdout=told, stderr=told) as one,
    ):
        try:
            yield one
        finally:
            one.send_signal(signal.SIGINT)
            try:
                one.wait(PATIENCE)
            finally:
                one.kill()


def await_port(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server listens; one that ended is a failure with what it said."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), PATIENCE).close()
        except OSError:
            assert server.poll() is None, log.read_text("utf-8", "replace")
            assert time.monotonic() < end, port
            time.sleep(0.05)
        else:
            return


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial uses curl")
def test_the_tutorial_works_as_it_is_written(tmp_path: Path) -> None:
    web, site = free_port(), free_port()
    shop, url = tmp_path / "shop", f"lmdb:{tmp_path}/shop/store"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PQ_", "PQADMIN_"))}
    environment |= {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PQADMIN_STORE": url,
        "PQADMIN_DATA": str(shop / "data"),
        "PQADMIN_PORT": str(site),
    }
    ports = {"python web.py": web, "pqadmin serve": site}

    def sh(command: str) -> str:
        return run_to_end(
            ["bash", "-e", "-c", command],
            cwd=shop if shop.exists() else tmp_path,
            env=environment,
            check=True,
        ).stdout

    last = ""
    with ExitStack() as terminals:
        for kind, text in BLOCK.findall(TUTORIAL.read_text("utf-8").replace("8080", str(web))):
            if kind == "python":
                (shop / text.splitlines()[0].removeprefix("# ")).write_text(text)
            elif kind == "sh background":
                program = terminals.enter_context(running(text.strip(), shop, environment))
                if text.strip() in ports:
                    await_port(ports[text.strip()], program, shop / "terminal.log")
            elif kind == "sh":
                if text == "rm outage\n":  # followed by a press on Retry
                    sh(text)
                    with open_store(url) as store:
                        dead = [item.id for item in store.queue("mail").dead().items]
                        assert store.actions("reader").retry_dead("mail", dead)
                elif "cat " in text or "sort " in text or "tail " in text or "depth" in text:
                    last = text  # only reads: its output follows
                else:
                    sh(text)
            else:
                shown = partial(sh, f"{last.strip()} 2>&1 || true")
                await_true(lambda shown=shown, text=text: shown() == text)
    assert "ConnectionError" in (shop / "terminal.log").read_text()
