"""Streamed answers of the real server: whole for clients that read, held back for the rest."""

import signal
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from queues import open_store
from tests.server.conftest import PATIENCE, Site, log_in
from tests.server.test_http_limits import memory

ITEMS, SIZE = 600, 88_000


def test_an_export_is_sent_no_faster_than_it_is_taken(serve: Callable[..., Site], tmp_path: Path) -> None:
    site = serve()
    cookies = log_in(site)
    opener = urllib.request.build_opener()
    opener.addheaders = [("Cookie", cookies)]
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        jobs = store.create_queue("jobs")
        for _ in range(ITEMS // 50):
            jobs.push_many([(b"x" * SIZE, 1)] * 50)
    address = "/queues/jobs/export/?format=ndjson"
    packed = urllib.request.Request(site.address + address, headers={"Accept-Encoding": "gzip, br"})
    with opener.open(packed) as answer:
        assert answer.headers["Content-Encoding"] == "identity"  # browsers read only the first of several packings
        assert len(answer.read().splitlines()) == ITEMS
    before = memory(site, "RssAnon")
    parts = urllib.parse.urlsplit(site.address)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as slow:
        slow.sendall(f"GET {address} HTTP/1.0\r\nHost: {parts.netloc}\r\nCookie: {cookies}\r\n\r\n".encode())
        assert slow.recv(12).endswith(b"200")
        with opener.open(site.address + address) as answer:  # meanwhile another person reads all of it
            assert len(answer.read().splitlines()) == ITEMS
        assert memory(site, "RssAnon") - before < ITEMS * SIZE // 2
        taken = b""
        while part := slow.recv(1 << 20):
            taken = (taken + part)[-SIZE * 2 :]
        assert taken.count(b"\n") >= 1
        assert taken.rstrip().endswith(b"}")


def opened_soon(opener: urllib.request.OpenerDirector, address: str) -> Any:
    """Open a page as soon as there is a place: a client sees that it was cut off before its place is another's."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            return opener.open(address)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 429 or time.monotonic() > give_up:
                raise


def read_slowly(slow: socket.socket, ended: threading.Event) -> None:
    """Take some bytes of an answer now and then until it is cut off."""
    slow.settimeout(PATIENCE)
    try:
        while not ended.wait(0.02) and slow.recv(16):
            pass
    except ConnectionError:
        pass


def test_a_client_that_reads_a_byte_now_and_then_keeps_no_place(serve: Callable[..., Site], tmp_path: Path) -> None:
    hurried = tmp_path / "hurried.py"  # the site as it is; told to hurry, it waits for a second instead of a minute
    hurried.write_text(
        "import signal\n"
        "from pqadmin.cli import main\n"
        "from pqadmin.server import receive_rate\n"
        "signal.signal(signal.SIGUSR1, lambda *_: setattr(receive_rate, 'WITHIN', 1.0))\n"
        "signal.signal(signal.SIGUSR2, lambda *_: setattr(receive_rate, 'WITHIN', 60.0))\n"
        "main()\n",
    )
    site = serve(program=str(hurried))
    cookies = log_in(site)
    opener = urllib.request.build_opener()
    opener.addheaders = [("Cookie", cookies)]
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        jobs = store.create_queue("jobs")
        for _ in range(3):
            jobs.push_many([(b"x" * SIZE, 1)] * 50)
    address = "/queues/jobs/export/?format=ndjson"
    parts = urllib.parse.urlsplit(site.address)
    ended, clients = threading.Event(), []
    for _ in range(2):  # as many as one person may have at once
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect((parts.hostname, parts.port))
        slow.sendall(f"GET {address} HTTP/1.0\r\nHost: {parts.netloc}\r\nCookie: {cookies}\r\n\r\n".encode())
        assert slow.recv(12).endswith(b"200")
        clients.append((slow, threading.Thread(target=read_slowly, args=(slow, ended))))
        clients[-1][1].start()
    try:
        with pytest.raises(urllib.error.HTTPError, match="429"):
            opener.open(site.address + address)
        site.signal(signal.SIGUSR1)
        give_up = time.monotonic() + PATIENCE
        for _, reader in clients:
            reader.join(give_up - time.monotonic())
            assert not reader.is_alive(), "it was not cut off"
        site.signal(signal.SIGUSR2)
        with opened_soon(opener, site.address + address) as answer:
            assert len(answer.read().splitlines()) == 150
    finally:
        ended.set()
        for slow, reader in clients:
            reader.join(PATIENCE)
            slow.close()
