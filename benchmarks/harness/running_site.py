"""The real server as a user starts it, with data of its own, and a logged-in session for a measurement."""

import http.client
import os
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping
from http.cookies import SimpleCookie
from pathlib import Path
from types import TracebackType
from urllib.parse import urlencode, urlsplit

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 60.0
_SESSIONS = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "pqadmin.settings"
import django
django.setup()
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from pqadmin.accounts.roles import Role, grant
for number in range(int(sys.argv[1])):
    user = User.objects.create_user(f"socket-{number}")
    grant(user, Role.VIEWER)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    print(f"{settings.SESSION_COOKIE_NAME}={session.session_key}")
"""


class RunningSite:
    """`pqadmin serve` on a free port of the loopback, on a store and in a data folder below `folder`.

    Or on another store, or started by another module of this package that does the same and more.
    """

    def __init__(
        self, folder: Path, *, store_url: str = "", module: str = "pqadmin", settings: Mapping[str, str] | None = None
    ) -> None:
        self.store_url = store_url or f"lmdb:{folder}/store"
        self._module = module
        self.host, self.port = "", 0
        self._log = folder / "server.log"
        self._environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("PQADMIN_")},
            "PQADMIN_DATA": str(folder / "data"),
            "PQADMIN_STORE": self.store_url,
            # A thousand viewers are few people here, at one address.
            "PQADMIN_CONNECTIONS_PER_ADDRESS": "0",
            "PQADMIN_REQUESTS_PER_ADDRESS": "0",
            "PQADMIN_REQUESTS_PER_PERSON": "0",
            "PQADMIN_SOCKETS_PER_PERSON": "0",
            **(settings or {}),
        }
        self._environment.pop("DATABASE_URL", None)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "RunningSite":
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, "serve", "--port", "0"],
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
        return cpu_seconds(self.pid)

    def memory(self) -> int:
        """Return the bytes of memory that the server has of its own."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def sessions(self, count: int) -> list[str]:
        """Create so many viewers with a session each, as a login would; return their Cookie headers."""
        made = subprocess.run(
            [sys.executable, "-c", _SESSIONS, str(count)],
            cwd=_ROOT,
            env=self._environment,
            text=True,
            check=True,
            stdout=subprocess.PIPE,
        )
        return made.stdout.split("\n")[:count]

    def token(self, *, queues: str = "*", verbs: str = "all") -> str:
        """Create a token of the oldest admin, and return it."""
        made = subprocess.run(
            [sys.executable, "-m", "pqadmin", "create_token", "bench", "--queues", queues, "--verbs", verbs],
            cwd=_ROOT,
            env=self._environment,
            text=True,
            check=True,
            stdout=subprocess.PIPE,
        )
        return made.stdout.split()[-1]

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


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cookies(answer: http.client.HTTPResponse) -> dict[str, str]:
    jar: SimpleCookie = SimpleCookie()
    for header in answer.headers.get_all("Set-Cookie", []):
        jar.load(header)
    return {name: morsel.value for name, morsel in jar.items()}


def _header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={text}" for name, text in cookies.items())
