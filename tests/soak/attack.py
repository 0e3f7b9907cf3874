"""Attacks on a running server while a viewer watches: the page stays live, and memory stays bounded.

    python -m tests.soak.attack [--rounds N] [--gap SECONDS] [--memory MB]

Starts a site of its own and repeats what froze release 0.1, filled its memory or locked other clients out: bodies
that are slow to parse, bodies without end, sockets that stop other sockets or do not read, connections that say
nothing, and guesses of a password under many spellings. Meanwhile a process of its own watches one busy queue. Prints a
line for each attack: the longest time without a frame, and the most memory that the server had. Ends with 1 if one is
over its limit.
"""

import argparse
import contextlib
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from queues import open_store
from tests.server.conftest import PATIENCE, ROOT, Site, log_in

#: Seconds between two changes of the queue that is watched.
CHANGE_EVERY = 0.1
#: The address that attacks come from, which on Linux is this machine too; the viewer's is another one.
ATTACKER = "127.0.0.2"
LOGIN = b"/accounts/login/"
FORGED = b"Cookie: pqadmin_csrf=" + b"a" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one attack did to the site."""

    attack: str
    #: Seconds without a frame, and bytes, at most.
    gap: float
    memory: int
    frames: int


class Attack:
    """One site under attack, and what attackers know of it."""

    def __init__(self, site: Site, cookies: str) -> None:
        self.site = site
        self.cookies = cookies
        parts = urllib.parse.urlsplit(site.address)
        self._host, self._port = str(parts.hostname), int(parts.port or 80)

    # Line 8

    def bodies_that_take_long_to_parse(self) -> None:
        nested = b"".join(
            b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (level, level + 1) for level in range(480)
        )
        form, encoded = b"multipart/form-data; boundary=b", b"application/x-www-form-urlencoded"
        bodies = [
            (LOGIN, nested + b"--\r\n" * 230_000, form + b"0"),
            (b"/queues/watched/push/many/", b"--b\r\n\r\n" * 2_000_000, form),
            (b"/queues/watched/push/many/", b"%41" * 6_600_000, encoded),
            (LOGIN, b"%41" * 330_000, encoded),
        ]
        _at_once([lambda body=body: self._post(*body) for body in bodies for _ in range(2)])
        _at_once([lambda: self._post(*bodies[-1]) for _ in range(16)])

    # Line 9

    def bodies_without_end(self) -> None:
        def announced() -> None:
            self._send(_head(LOGIN, b"Content-Length: 400000000"), (b"x" * 65_536 for _ in range(6_000)))

        def in_chunks() -> None:
            chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
            self._send(_head(LOGIN, b"Transfer-Encoding: chunked"), (chunk for _ in range(6_000)))

        _at_once([announced, in_chunks])
        with ExitStack() as held:
            for _ in range(60):
                with contextlib.suppress(OSError):
                    waiting = held.enter_context(self._connect())
                    waiting.sendall(_head(LOGIN, b"Content-Length: 1000000") + b"x" * 999_999)

    # Line 10

    def messages_that_stop_others(self) -> None:
        with ExitStack() as held:
            for _ in range(10):
                live = held.enter_context(self._socket())
                live.send(json.dumps({"t": "watch", "topic": "overview", "queues": [], "groups": ["\ud800"]}))
            time.sleep(1.5)  # rounds of the hub

    # Line 11

    def sockets_that_do_not_read(self) -> None:
        ping, ack = b"\x89\xfd\0\0\0\0" + b"x" * 125, []
        for seq in range(1, 2_000):
            for message in ({"t": "resync"}, {"t": "ack", "seq": seq}):
                text = json.dumps(message, separators=(",", ":")).encode()
                ack.append(bytes([0x81, 0x80 | len(text)]) + b"\0\0\0\0" + text)

        def flood(parts: Iterable[bytes]) -> None:
            with contextlib.suppress(OSError, WebSocketException), self._socket() as live:
                live.send(json.dumps({"t": "watch", "topic": "overview", "queues": [], "complete": True}))
                live.socket.settimeout(3.0)
                for part in parts:
                    live.socket.sendall(part)

        _at_once([lambda: flood(ping * 1_000 for _ in range(2_000)), lambda: flood(ack)])
        with ExitStack() as held:
            for _ in range(100):  # 50 may be open at once
                with contextlib.suppress(OSError, WebSocketException):
                    held.enter_context(self._socket())

    # Line 12

    def connections_that_say_nothing(self) -> None:
        with ExitStack() as held:
            for _ in range(1_200):
                with contextlib.suppress(OSError):
                    held.enter_context(self._connect()).sendall(b"GET / HTTP/1.1\r\n")
            self.site.get("/livez")

    # Line 13

    def guesses_under_many_spellings(self) -> None:
        spellings = ["admin", "admin ", " admin", "ADMIN", "\uff41dmin", "a\uff44min", "admi\uff4e", "\uff21DMIN"]
        page = self._ask(b"GET", LOGIN)
        token = re.search(rb'csrfmiddlewaretoken" value="(\w+)"', page)
        cookie = re.search(rb"pqadmin_csrf=(\w+)", page)
        assert token
        assert cookie
        refused = 0
        for number in range(60):
            form = {
                "username": spellings[number % len(spellings)],
                "password": f"guess-{number}",
                "csrfmiddlewaretoken": token.group(1).decode(),
            }
            body = urllib.parse.urlencode(form).encode()
            kind = b"application/x-www-form-urlencoded"
            answer = self._post(LOGIN, body, kind, b"Cookie: pqadmin_csrf=" + cookie.group(1))
            refused += answer[9:12] == b"429" or b"Too many failed logins" in answer
        assert refused > 0, "60 guesses of one account, and none was refused"

    def _ask(self, method: bytes, path: bytes) -> bytes:
        with self._connect() as connection:
            connection.sendall(_head(path, b"Connection: close", method=method))
            return _read(connection)

    def _post(self, path: bytes, body: bytes, kind: bytes, cookie: bytes = FORGED) -> bytes:
        fields = (b"Connection: close", b"Content-Type: " + kind, b"Content-Length: %d" % len(body), cookie)
        return self._send(_head(path, *fields), [body])

    def _send(self, head: bytes, parts: Iterable[bytes]) -> bytes:
        with self._connect() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(head)
                for part in parts:
                    connection.sendall(part)
            return _read(connection)

    def _connect(self) -> socket.socket:
        return socket.create_connection((self._host, self._port), timeout=30, source_address=(ATTACKER, 0))

    def _socket(self) -> ClientConnection:
        return _live(self.site.address, self.cookies)


ATTACKS: tuple[Callable[[Attack], None], ...] = (
    Attack.bodies_that_take_long_to_parse,
    Attack.bodies_without_end,
    Attack.messages_that_stop_others,
    Attack.sockets_that_do_not_read,
    Attack.connections_that_say_nothing,
    Attack.guesses_under_many_spellings,
)


def run(folder: Path, *, rounds: int = 1) -> Iterator[Finding]:
    """Attack a site with data in `folder`; what each attack did, one after the other."""
    site = Site(folder)
    try:
        cookies = log_in(site)
        with open_store(f"lmdb:{folder / 'store'}") as store:
            store.create_queue("watched")
            for number in range(60):
                queue = store.create_queue(f"other:{number}")
                queue.push(b"x" * 200, priority=1)
        viewer = Viewer(site.address, cookies, folder)
        try:
            viewer.since()
            for _ in range(rounds):
                for attack in ATTACKS:
                    Path(f"/proc/{site.process.pid}/clear_refs").write_text("5")  # peaks begin anew
                    attack(Attack(site, cookies))
                    gap, frames = viewer.since()
                    yield Finding(attack=attack.__name__, gap=gap, frames=frames, memory=_peak(site))
        finally:
            viewer.stop()
    finally:
        site.stop()


class Viewer:
    """A process that watches one queue and changes it, so that attackers' work is none of its own."""

    def __init__(self, address: str, cookies: str, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.soak.attack", "--watch", address, str(folder)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._say(cookies)
        assert self._hear() == "watching"

    def since(self) -> tuple[float, int]:
        """Return the longest gap between two frames since the last call, and the number of frames."""
        self._say("since")
        gap, frames = json.loads(self._hear())
        return float(gap), int(frames)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _say(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + "\n")

    def _hear(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


def watch(address: str, folder: str) -> None:
    """Be the viewer's process: told the cookies, then asked for gaps, line by line."""
    cookies = sys.stdin.readline().strip()
    lock, last, longest, frames = threading.Condition(), time.monotonic(), 0.0, 0
    with open_store(f"lmdb:{folder}/store") as store, _live(address, cookies) as live:
        queue = store.queue("watched")
        live.send(json.dumps({"t": "watch", "topic": "overview", "queues": [str(queue.id)]}))

        def change() -> None:
            while True:
                queue.push(b"x", priority=1)
                queue.pop_min()
                time.sleep(CHANGE_EVERY)

        def follow() -> None:
            nonlocal last, longest, frames
            while True:
                message = json.loads(live.recv(timeout=PATIENCE))
                if "seq" in message:
                    live.send(json.dumps({"t": "ack", "seq": message["seq"]}, separators=(",", ":")))
                if message["t"] == "frame":
                    with lock:
                        now = time.monotonic()
                        longest, last, frames = max(longest, now - last), now, frames + 1
                        lock.notify_all()

        for work in (change, follow):
            threading.Thread(target=work, daemon=True).start()
        print("watching", flush=True)

        def came() -> bool:
            return frames > 0

        for _ in sys.stdin:
            with lock:
                lock.wait_for(came, PATIENCE)  # some attacks end before the next frame is due
                now = time.monotonic()
                answer = [max(longest, now - last), frames]
                longest, frames = 0.0, 0
            print(json.dumps(answer), flush=True)


def _live(address: str, cookies: str) -> ClientConnection:
    return connect(
        address.replace("http", "ws") + "/live/",
        additional_headers={"Cookie": cookies, "Origin": address},
        open_timeout=PATIENCE,
        close_timeout=1,
        ping_interval=None,
    )


def _head(path: bytes, *fields: bytes, method: bytes = b"POST") -> bytes:
    return b"\r\n".join([method + b" " + path + b" HTTP/1.1", b"Host: 127.0.0.1", *fields, b"", b""])


def _read(connection: socket.socket) -> bytes:
    answer = b""
    with contextlib.suppress(OSError):
        while part := connection.recv(65_536):
            answer += part
    return answer


def _at_once(works: Iterable[Callable[[], Any]]) -> None:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def _peak(site: Site) -> int:
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{site.process.pid}/status").read_text())
    assert found
    return int(found.group(1)) * 1024


def main() -> int:
    """Run the attacks and print what they did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gap", type=float, default=1.0, help="seconds without a frame, at most")
    parser.add_argument("--memory", type=int, default=250, help="megabytes of resident memory, at most")
    parser.add_argument("--watch", nargs=2, metavar=("ADDRESS", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.watch:
        watch(*chosen.watch)
        return 0
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for found in run(Path(folder), rounds=chosen.rounds):
            bad = found.gap > chosen.gap or found.memory > chosen.memory * 1_000_000
            failed |= bad
            line = f"{found.attack:32}  {found.frames:5} frames, longest gap {found.gap:5.2f} s"
            line += f", {found.memory // 1_000_000:4} MB"
            print(line + ("  FAILED" if bad else ""), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
