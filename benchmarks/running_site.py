"""The real server as a user starts it, with data of its own, and a logged-in session for a measurement."""

from __future__ import annotations

import http.client
import os
import re
import secrets
import subprocess
import sys
import threading
from http.cookies import SimpleCookie
from pathlib import Path
from types import TracebackType
from urllib.parse import urlencode, urlsplit

_ROOT = Path(__file__).resolve().parents[1]
_START_SECONDS = 60.0


class RunningSite:
    """`pqadmin serve` on a free port of the loopback, on a store and in a data folder below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.store_url = f"lmdb:{folder}/store"
        self.host, self.port = "", 0
        self._log = folder / "server.log"
        self._environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("PQADMIN_")},
            "PQADMIN_DATA": str(folder / "data"),
            "PQADMIN_STORE": self.store_url,
        }
        self._environment.pop("DATABASE_URL", None)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> RunningSite:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pqadmin", "serve", "--port", "0"],
                cwd=_ROOT,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        address = urlsplit(self._address(self._process))
        self.host, self.port = address.hostname or "", address.port or 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            if self._process.stdout is not None:
                self._process.stdout.close()

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Return the processor time that the server has used so far, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log_in(self, *, role: str = "operator") -> str:
        """Create a user of the role, log in as a browser does, and return the Cookie header of the session."""
        name, password = f"bench-{secrets.token_hex(4)}", secrets.token_urlsafe(18)
        subprocess.run(
            [sys.executable, "-m", "pqadmin", "create_user", name, "--role", role, "--password-stdin"],
            cwd=_ROOT,
            env=self._environment,
            input=password + "\n",
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        path = "/accounts/login/"
        connection.request("GET", path)
        answer = connection.getresponse()
        page = answer.read().decode()
        cookies = _cookies(answer)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        if token is None:
            raise SystemExit(f"no login form at {path}: {answer.status}")
        form = {"username": name, "password": password, "csrfmiddlewaretoken": token[1]}
        connection.request(
            "POST",
            path,
            urlencode(form),
            {
                "Content-Type": "application/x-www-form-urlencoded",
                "Cookie": _header(cookies),
                "Origin": f"http://{self.host}:{self.port}",
            },
        )
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != 302:
            raise SystemExit(f"login was answered with {answer.status}")
        return _header({**cookies, **_cookies(answer)})

    def _address(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        watchdog = threading.Timer(_START_SECONDS, process.kill)
        watchdog.start()
        try:
            for line in process.stdout:
                found = re.search(r"http://\S+", line)
                if found is not None:
                    return found[0]
        finally:
            watchdog.cancel()
        process.kill()
        raise SystemExit(f"the server did not start:\n{self._log.read_text()}")


def _cookies(answer: http.client.HTTPResponse) -> dict[str, str]:
    jar: SimpleCookie = SimpleCookie()
    for header in answer.headers.get_all("Set-Cookie", []):
        jar.load(header)
    return {name: morsel.value for name, morsel in jar.items()}


def _header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={text}" for name, text in cookies.items())
