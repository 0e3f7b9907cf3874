"""Processes of the soak of two sites, one after the other at each place, and threads that keep them at work."""

import http.cookiejar
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.soak import two_sites_verdict as verdict
from tests.soak import wall_clock
from tests.soak.two_sites_worker import boottime

if TYPE_CHECKING:
    from tests.soak.two_sites import Soak

ROOT = Path(__file__).resolve().parents[2]
#: Seconds between two looks at `/readyz`.
READY_EVERY = 5.0
#: Seconds that a site gets to start, and for which it may be silent afterwards on a busy machine.
STARTING, SILENT = 45.0, 20.0
#: Seconds in which a process must end.
ENDED = 60.0
#: Lines of one chunk of an import.
CHUNK = 5


class Running:
    """One process after the other at one place; each with another wall clock, and the result of it."""

    def __init__(self, soak: "Soak", name: str, command: Callable[[str], Sequence[str]], **variables: str) -> None:
        self._soak = soak
        self.name = name
        self._command = command
        self._variables = variables
        self.count = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.life = ""
        #: When it started.
        self.since = 0.0
        self.said: Path = soak.folder / f"{name}.log"
        self._clock = soak.folder / f"{name}.clock"

    def start(self, shift: int) -> None:
        """Start the next process."""
        self.count += 1
        self.life = f"{self.name}-{self.count}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PQADMIN_")}
        with self.said.open("ab") as output:
            output.write(f"--- {self.life}, clock {shift:+d} s\n".encode())
            output.flush()
            self.set_clock(shift)
            self.since = boottime()
            self._soak.lives[self.life] = verdict.Life(process=self.life)
            self.process = subprocess.Popen(
                self._command(self.life),
                env=clean
                | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), **self._variables}
                | wall_clock.variables(self._soak.library, self._clock),
                cwd=self._soak.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def set_clock(self, shift: int) -> None:
        """Set the wall clock of the process that runs, and of those to come, ahead by so many seconds."""
        wall_clock.set_ahead(self._clock, shift)

    def end(self, number: signal.Signals, *, within: float = ENDED) -> int:
        """Send a signal, wait for the end and return the exit code; what does not end in time is killed."""
        if number is signal.SIGTERM:
            self._note(told=boottime())
        self.process.send_signal(number)
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self._soak.wrong(f"{self.life} did not end within {within:.0f} s of {number.name}")
            self.process.kill()
            code = self.process.wait()
        self.gone()
        return code

    def gone(self) -> None:
        """Note that the process has ended."""
        self._note(ended=boottime())

    def _note(self, **moments: float) -> None:
        life = self._soak.lives[self.life]
        self._soak.lives[self.life] = verdict.Life(
            process=life.process, told=moments.get("told", life.told), ended=moments.get("ended", life.ended)
        )

    def memory(self) -> int | None:
        """Return the bytes of anonymous memory; None when the process is not there."""
        with suppress(OSError):
            found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
            return None if found is None else int(found[1]) * 1024
        return None


class Importer(threading.Thread):
    """Writes files and imports them one after the other, resumed after each kill, until told to end."""

    def __init__(self, soak: "Soak", number: int) -> None:
        super().__init__(name=f"importer-{number}", daemon=True)
        self._soak = soak
        self._number = number
        self._chance = random.Random(f"{soak.seed} importer {number}")
        self._files = self._lines = 0
        self._took = 2.0
        self._path, self._kind = Path(), ""
        self.running = Running(soak, self.name, self._command, PQADMIN_DATA=str(soak.folder / self.name))
        self.ending = threading.Event()

    def _command(self, _: str) -> Sequence[str]:
        queue, store = f"{self._soak.run_name}:{self._kind}", f"--store={self._soak.url}"
        options = ("--resume", "--chunk", str(CHUNK), store)
        return (sys.executable, str(ROOT / "manage.py"), "import_items", queue, str(self._path), *options)

    def run(self) -> None:
        """Import file after file."""
        try:
            while not self.ending.is_set():
                began = time.monotonic()
                lines = self._write_file()
                self._import()
                rest = lines * 2 / self._soak.rate - (time.monotonic() - began)
                while self._soak.full() and not self.ending.is_set():
                    self.ending.wait(0.5)
                self.ending.wait(max(0.0, rest))
        except BaseException as error:  # told at the end, as no one waits for a thread
            self._soak.wrong(f"{self.name} ended by {error!r}")
            raise

    def _write_file(self) -> int:
        """Write the next file, and note the expected result of each of its lines."""
        self._files += 1
        self._kind = ("quick", "quick", "long", "quick", "quick", "failing", "quick", "held")[self._files % 8]
        lines = {"long": 6, "held": 2, "failing": 30}.get(self._kind, max(CHUNK, int(self._soak.rate * 2.5)))
        self._path = self._soak.folder / f"{self.name}-{self._files}.ndjson"
        with self._path.open("w") as file:
            for _ in range(lines):
                self._lines += 1
                value: dict[str, Any] = {"name": f"{self._number}-{self._lines}"}
                if self._kind == "quick" and self._lines % 5 == 0:
                    value["hops"] = 2
                if self._kind == "failing":
                    value["fails"] = -1 if self._lines % 7 == 0 else self._chance.randrange(1, 4)
                self._soak.expect(self._kind, value)
                file.write(json.dumps({"value": json.dumps(value), "priority": self._chance.randrange(100)}) + "\n")
        return lines

    def _import(self) -> None:
        """Import the file; kill the command at times, and resume."""
        killed = False
        while True:
            self.running.start(self._chance.choice(self._soak.shifts))
            process, began = self.running.process, time.monotonic()
            if self._chance.random() < 0.5 and not self.ending.is_set():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(self._took * self._chance.uniform(0.3, 1.1))
                if process.poll() is None:
                    number = signal.SIGTERM if self._chance.random() < 0.2 else signal.SIGKILL
                    self._soak.counted[f"{number.name} to an importer"] += 1
                    killed = True
                    if self.running.end(number) != 0:
                        continue
            code = process.wait()
            self.running.gone()
            if code == 0:
                self._took = self._took if killed else 0.7 * self._took + 0.3 * (time.monotonic() - began)
                self._path.unlink()
                return
            self._soak.counted["imports that failed by themselves"] += 1
            self.ending.wait(1.0)


class Viewer(threading.Thread):
    """Looks at one site for as long as it runs: a live socket that acknowledges each frame, and `/readyz`."""

    def __init__(self, soak: "Soak", site: Running, port: int) -> None:
        super().__init__(name=f"viewer of {site.name}", daemon=True)
        self._soak = soak
        self._site = site
        self._origin = f"http://127.0.0.1:{port}"
        self._cookies = ""
        self._heard = self._ready = self._asked = 0.0
        self.frames = 0
        #: The longest times without a frame or beat, and without an answer of `/readyz`, while the site was up.
        self.longest = {"a frame or beat": 0.0, "/readyz": 0.0}
        self.ending = threading.Event()

    def run(self) -> None:
        """Look until told to end."""
        while not self.ending.is_set():
            with suppress(OSError, WebSocketException, TimeoutError, urllib.error.URLError):
                self._cookies = self._cookies or self._log_in()
                self._watch()
            self._look()
            self.ending.wait(0.5)

    def _log_in(self) -> str:
        found = re.search(rb"Password\s+(\S+)", self._site.said.read_bytes())
        if found is None:
            return ""
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        login = f"{self._origin}/accounts/login/"
        with browser.open(login, timeout=SILENT) as page:
            token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
        form = {"username": "admin", "password": found[1].decode(), "csrfmiddlewaretoken": token[1]}
        with browser.open(login, urllib.parse.urlencode(form).encode(), timeout=SILENT):
            return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)

    def _watch(self) -> None:
        headers = {"Cookie": self._cookies, "Origin": self._origin}
        address = self._origin.replace("http", "ws") + "/live/"
        with connect(address, additional_headers=headers, open_timeout=SILENT, ping_interval=None) as live:
            watched = [str(number) for number in self._soak.ids]
            live.send(json.dumps({"t": "watch", "topic": "overview", "queues": watched}))
            while not self.ending.is_set():
                self._look()
                with suppress(TimeoutError):
                    message = json.loads(live.recv(timeout=1.0))
                    self._heard = boottime()
                    self.frames += message["t"] == "frame"
                    if "seq" in message:
                        live.send(json.dumps({"t": "ack", "seq": message["seq"]}))

    def _look(self) -> None:
        """Ask `/readyz` when it is time, and note how long the site has been silent."""
        now = boottime()
        if now - self._asked > READY_EVERY:
            self._asked = now
            with (
                suppress(OSError, urllib.error.URLError, TimeoutError),
                urllib.request.urlopen(f"{self._origin}/readyz", timeout=SILENT) as answer,
            ):
                if answer.status == 200:
                    self._ready = boottime()
        since = self._site.since + STARTING
        for what, last in (("a frame or beat", self._heard), ("/readyz", self._ready)):
            self.longest[what] = max(self.longest[what], boottime() - max(last, since))
