"""A real server as a subprocess, started the way a user starts it."""

import http.cookiejar
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from queues.admin import LogLimit
from tests.prepared import prepare

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0  # seconds; reached only when something hangs


class Site:
    """One `pqadmin serve` process and what it has said so far."""

    def __init__(
        self,
        data: Path,
        *arguments: str,
        program: str = str(ROOT / "manage.py"),
        prepared: bool = True,
        **variables: str,
    ) -> None:
        if prepared:
            prepare(data)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PQADMIN_")}
        self.data = data
        self.process = subprocess.Popen(
            [sys.executable, program, "serve", "--port", "0", *arguments],
            env=clean | {"PQADMIN_DATA": str(data), "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), **variables},
            cwd=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self.complained: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.said), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.complained), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, lines: list[str]) -> None:
        with stream:
            for line in stream:
                if "held up all other callers" in line:  # as on a machine that was stopped for a second
                    continue
                lines.append(line.rstrip("\n"))
                self._lines.put(lines[-1])
        self._lines.put(None)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Return the first match in a line that the process writes, now or later."""
        for line in [*self.said, *self.complained]:
            if found := re.search(pattern, line):
                return found
        while (line_or_end := self._lines.get(timeout=PATIENCE)) is not None:
            if found := re.search(pattern, line_or_end):
                return found
        raise AssertionError(f"{pattern!r} was never said: {self.said} {self.complained}")

    @property
    def address(self) -> str:
        """The site's address without the last slash, once it serves."""
        return self.wait_for(r"Address\s+(http://\S+)/").group(1)

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of a GET."""
        with urllib.request.urlopen(self.address + path, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Wait for the end and return its code."""
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return code

    def stop(self) -> None:
        """End the process if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.exit_code()


def send_login(site: Site, username: str, password: str, jar: http.cookiejar.CookieJar) -> Any:
    """Fill in and send the login form as a browser does; return the answer, to be closed."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    login = f"{site.address}/accounts/login/"
    with browser.open(login, timeout=PATIENCE) as page:
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
    assert found
    form = {"username": username, "password": password, "csrfmiddlewaretoken": found.group(1)}
    return browser.open(login, urllib.parse.urlencode(form).encode(), timeout=PATIENCE)


def log_in(site: Site) -> str:
    """Log the first admin in; return the cookies."""
    jar = http.cookiejar.CookieJar()
    with send_login(site, "admin", site.wait_for(r"Password\s+(\S+)").group(1), jar) as overview:
        assert overview.url == f"{site.address}/"
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


@pytest.fixture(autouse=True)
def log_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test see lines that are logged once a minute, also where another test has just caused one."""
    from pqadmin.server import admission, daphne_server, health, http_channel, site_socket

    for module in (admission, daphne_server, health, http_channel, site_socket):
        monkeypatch.setattr(module, "_limited", LogLimit(module.log))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Start servers with data in `tmp_path`; all of them are gone afterwards."""
    with ExitStack() as stack:

        def start(*arguments: str, **options: Any) -> Site:
            site = Site(tmp_path, *arguments, **options)
            stack.callback(site.stop)
            return site

        yield start


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with the default settings, which the tests of a module share."""
    shared = Site(tmp_path_factory.mktemp("site"))
    yield shared
    shared.stop()


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that the tests of a module share: none gives it reason to complain, and it ends well."""
    shared = Site(tmp_path_factory.mktemp("quiet"))
    try:
        yield shared
        shared.signal(signal.SIGTERM)
        code = shared.exit_code()
    finally:
        shared.stop()
    assert (code, shared.complained) == (0, [])
