"""The tutorial of JavaScript and Python works as it is written: its files, terminals, outputs and page, in order."""

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from queues import open_store
from tests.ports import free_port
from tests.site.test_tutorial import PATIENCE, await_port, running
from tests.waiting import await_true

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "javascript-and-python.md"
BLOCK = re.compile(
    r"^```(js|python|html|sh|sh worker|sh background|sh background worker|text)\n(.*?)^```", re.DOTALL | re.MULTILINE
)


class Terminals:
    """The reader's terminals: each keeps its folder and its variables from one command to the next."""

    def __init__(self, home: Path, **variables: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PQ_", "PQADMIN_"))}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # as in the clone's environment
        clone = home / "clone"  # where the site's data is, as nothing names another place
        clone.mkdir()
        first = clean | {"HOME": str(home), "PWD": str(clone), "PATH": path, **variables}
        self._home = home
        self._variables: dict[str, dict[str, str]] = defaultdict(first.copy)

    def run(self, terminal: str, commands: str) -> str:
        """Run commands to their end; return what they printed."""
        kept = self._home / "variables"
        of = self._variables[terminal]
        done = subprocess.run(
            ["bash", "-e", "-c", f"{commands.replace('. .venv/bin/activate', ':')}\nenv -0 >{kept}"],
            cwd=of["PWD"],
            env=of,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, (commands, done.stdout, done.stderr)
        self._variables[terminal] = dict(line.split("=", 1) for line in kept.read_text("utf-8").split("\0") if line)
        return done.stdout

    def of(self, terminal: str) -> dict[str, str]:
        """Return the variables of a terminal; PWD is its folder."""
        return self._variables[terminal]


@pytest.mark.skipif(shutil.which("node") is None, reason="the tutorial uses Node")
def test_the_tutorial_works_as_it_is_written(tmp_path: Path, chromium: Browser) -> None:
    site, page_port = free_port(), free_port()
    terminals, worker_log = Terminals(tmp_path, PQADMIN_PORT=str(site)), tmp_path / "worker.log"
    text = TUTORIAL.read_text("utf-8").replace("8000", str(site)).replace("3000", str(page_port))
    printed: dict[str, str] = {}
    with ExitStack() as running_ones:
        for kind, block in BLOCK.findall(text.replace("make serve", "pqadmin serve")):
            terminal = "worker" if "worker" in kind else "pushing"
            if kind in ("js", "python", "html"):
                name = re.search(r"[\w.]+\.(mjs|py|html)", block.splitlines()[0])
                assert name
                (tmp_path / "images" / name.group()).write_text(block, "utf-8")
            elif kind == "text":
                await_true(lambda block=block: block == worker_log.read_text("utf-8"))
            elif "background" in kind:
                variables = terminals.of(terminal)
                log = str(worker_log) if terminal == "worker" else "other.log"
                program = running_ones.enter_context(running(block.strip(), Path(variables["PWD"]), variables, log))
                if terminal != "worker":
                    port = page_port if "http.server" in block else site
                    await_port(port, program, Path(variables["PWD"]) / log)
            elif "revoke_token" in block:
                page = chromium.new_page()
                running_ones.callback(page.close)
                page.goto(f"http://localhost:{page_port}/")
                page.get_by_label("Token").fill(printed["echo $TOKEN"].strip())
                page.get_by_role("button", name="Resize").click()
                expect(page.locator("output")).to_have_text(re.compile(r"page\.jpg is item \w+"))
                await_true(lambda: "resized page.jpg\n" in worker_log.read_text("utf-8"))
                running_ones.close()  # Ctrl-C in every terminal
                terminals.run(terminal, block)
            else:
                printed[block.strip()] = terminals.run(terminal, block)
    first = printed["node send.mjs 5 cat.jpg dog.jpg owl.jpg\nnode send.mjs 1 fire.jpg"]
    assert printed["node send.mjs 5 cat.jpg"] == first.splitlines(keepends=True)[0]
    assert not (tmp_path / "images").exists()
    with open_store(f"lmdb:{tmp_path}/clone/var/store") as store:
        assert list(store.queues()) == []
