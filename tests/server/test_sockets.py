"""The live socket of a real server: access, and its end."""

import json
import secrets
import signal
import zlib

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from pqadmin.live.fast_path import Shared
from pqadmin.server import site_socket
from queues import open_store
from tests.schemas import validate
from tests.server.conftest import PATIENCE, log_in


def open_socket(site, path: str = "/live/", *, compression: str | None = "deflate", **headers: str):
    address = site.address.replace("http", "ws") + path
    patient = {"open_timeout": PATIENCE, "close_timeout": PATIENCE, "ping_interval": None}
    return connect(address, additional_headers=headers, compression=compression, **patient)


def test_the_socket_of_a_logged_in_page_is_told_when_the_server_goes(serve) -> None:
    site = serve()
    cookies = log_in(site)
    with open_socket(site, Cookie=cookies, Origin=site.address) as live:
        assert live.recv(timeout=PATIENCE)
        site.signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as closed:
            read_to_the_end(live)
        assert closed.value.rcvd.code == 1012
    assert site.exit_code() == 0
    assert site.complained == []


def test_people_without_rights_get_no_socket(quiet) -> None:
    """Another origin, another address, a stranger; and none of it makes noise in the log."""
    site = quiet
    cookies = log_in(site)
    for origin in (None, "http://evil.example", "http://127.0.0.1:1"):
        headers = {"Cookie": cookies} | ({"Origin": origin} if origin else {})
        with pytest.raises(InvalidStatus) as refused:
            open_socket(site, **headers)
        assert refused.value.response.status_code == 403
    with pytest.raises(InvalidStatus) as refused:
        open_socket(site, "/elsewhere/", Cookie=cookies, Origin=site.address)
    assert refused.value.response.status_code == 403
    with pytest.raises((InvalidStatus, ConnectionClosed)):
        read_to_the_end(open_socket(site, Origin=site.address))
    assert site.complained == []


@pytest.mark.parametrize("compression", ["deflate", None])
def test_frames_are_the_same_packed_and_plain(quiet, compression) -> None:
    """What many share is compressed once, behind what differs; acknowledgements may come packed."""
    site = quiet
    cookies = log_in(site)
    with open_store(f"lmdb:{site.data}/store") as store:
        queues = [store.create_queue(f"{compression}:{number:02}") for number in range(20)]
        values = [secrets.token_hex(20).encode() for _ in queues]
        for queue, value in zip(queues, values, strict=True):
            queue.push(value, priority=1)
        with open_socket(site, compression=compression, Cookie=cookies, Origin=site.address) as live:
            assert bool(live.protocol.extensions) is (compression is not None)
            live.send(json.dumps({"t": "watch", "topic": "overview", "queues": [str(queue.id) for queue in queues]}))
            seqs, shown = [], {}
            for turn in range(8):  # more than may be under way unacknowledged
                while True:
                    message = json.loads(live.recv(timeout=PATIENCE))
                    validate(message)
                    if "seq" in message:
                        seqs.append(message["seq"])
                        live.send(json.dumps({"t": "ack", "seq": message["seq"]}, separators=(",", ":")))
                    shown |= {row["id"]: row for row in message.get("rows", ())}
                    if len(shown) == 20 and all(row["ready"] == turn + 1 for row in shown.values()):
                        break
                store.transact(lambda tr: [queue.push(b"more", priority=2, tr=tr) for queue in queues] and None)
            assert [
                row["min"]["text"].encode() for row in sorted(shown.values(), key=lambda row: row["name"])
            ] == values
            assert seqs == sorted(set(seqs))
            live.send(json.dumps({"t": "ack", "seq": 10_000}))
            while (message := json.loads(live.recv(timeout=PATIENCE)))["t"] != "error":
                validate(message)
            assert message["code"] == "bad-ack"
    assert site.complained == []


def test_pings_now_and_then_are_answered(quiet) -> None:
    with open_socket(quiet, Cookie=log_in(quiet), Origin=quiet.address) as live:
        for _ in range(10):
            assert live.ping().wait(PATIENCE)
    assert quiet.complained == []


def test_a_packed_message_that_unpacks_to_too_much_is_refused(site) -> None:
    cookies = log_in(site)
    with open_socket(site, Cookie=cookies, Origin=site.address) as live:
        live.send(json.dumps({"t": "watch", "topic": "overview", "queues": [], "more": "x" * 200_000}))
        with pytest.raises(ConnectionClosed) as closed:
            read_to_the_end(live)
        assert closed.value.rcvd is None, "cut off"
    with open_socket(site, Cookie=cookies, Origin=site.address) as live:
        assert live.recv(timeout=PATIENCE)


def test_what_is_packed_once_follows_any_head() -> None:
    body = Shared(json.dumps({"rows": [{"id": str(n), "name": f"jobs:{n}"} for n in range(500)]}).encode())
    packed = site_socket.pack(body)
    assert len(packed) < len(body) / 4
    for head in (b"{", b"x" * 200, "{“é".encode()):
        whole = site_socket.stored_block(head) + packed + b"\0\0\xff\xff"
        assert zlib.decompressobj(-15).decompress(whole) == head + body
    lengths = {len(site_socket.pack(Shared(body + b" " * number))) for number in range(20)}
    assert max(lengths) - min(lengths) > 20, "lengths tell nothing exact about what was packed"


def read_to_the_end(live) -> None:
    """Receive until the connection is closed, which raises."""
    with live:
        while True:
            live.recv(timeout=PATIENCE)
