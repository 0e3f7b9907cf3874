"""Many viewers in a process of their own: raw websockets that watch one overview and acknowledge, or that stall.

    python -m benchmarks.harness.viewers HOST PORT SECONDS STALLED packed|plain < what.json

`what` holds the cookies and the watch message. One line "ready" is printed when all are connected and have their first
frame; then a line of JSON: frames, bytes, and the frames of the slowest and the median socket, in so many seconds.
"""

import asyncio
import base64
import json
import os
import re
import sys

_SEQ = re.compile(rb'"seq":(\d+)')
#: Handshakes under way at once.
_AT_ONCE = 20
#: Seconds between the word that all are connected and the first frame that counts.
SETTLE = 2.0
#: How often one viewer tries to connect.
_TRIES = 5
#: What browsers offer.
_OFFER = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
_MASK = b"\0\0\0\0"  # masked with zeros is masked, and costs no process anything


class Viewer(asyncio.Protocol):
    """One websocket. Knows of a frame only its number."""

    def __init__(self, host: str, cookie: str, watch: bytes, *, stalls: bool, packed: bool) -> None:
        self._host, self._cookie, self._watch, self._stalls, self._packed = host, cookie, watch, stalls, packed
        self._transport: asyncio.Transport
        self._buffer = b""
        self._skip = 0
        self._open = False
        self.frames = self.bytes = 0
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write(
            f"GET /live/ HTTP/1.1\r\nHost: {self._host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nOrigin: http://{self._host}\r\n"
            f"{_OFFER if self._packed else ''}"
            f"Cookie: {self._cookie}\r\n\r\n".encode()
        )

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(self._buffer[:200].decode("latin1") or "closed"))

    def data_received(self, data: bytes) -> None:
        self.bytes += len(data)
        if self._skip >= len(data):
            self._skip -= len(data)
            return
        data = self._buffer + data[self._skip :] if self._buffer else data[self._skip :]
        self._skip, self._buffer = 0, b""
        if not self._open:
            head, end, rest = data.partition(b"\r\n\r\n")
            if not end:
                self._buffer = data
                return
            if not head.startswith(b"HTTP/1.1 101"):
                self._buffer = data
                self._transport.close()
                return
            self._open, data = True, rest
            self._send(self._watch)
        self._messages(data)

    def _messages(self, data: bytes) -> None:
        at, end = 0, len(data)
        while end - at >= 64 or (end - at >= 2 and data[at + 1] < 126 and end - at >= 2 + data[at + 1]):
            size, start = data[at + 1], at + 2
            if size == 126:
                size, start = int.from_bytes(data[at + 2 : at + 4], "big"), at + 4
            elif size == 127:
                size, start = int.from_bytes(data[at + 2 : at + 10], "big"), at + 10
            # In a packed message the part with the number is as it is, behind the five bytes of its block.
            text = start + 5 if data[at] & 0x40 else start
            self._message(data[at] & 15, data[text : text + 60], data[text : text + 15])
            at = start + size
            if at > end:
                self._skip = at - end
                return
        self._buffer = data[at:]

    def _message(self, opcode: int, beginning: bytes, kind: bytes) -> None:
        if opcode == 8 and not self.ready.done():
            self.ready.set_exception(ConnectionError(f"closed with {int.from_bytes(beginning[:2], 'big')}"))
        if opcode != 1:
            return
        found = _SEQ.search(beginning)
        if found is None:
            return
        frame = kind.startswith(b'{"t":"frame"')
        self.frames += frame
        if frame and not self.ready.done():
            self.ready.set_result(None)
            if self._stalls:
                self._transport.pause_reading()
                return
        self._send(b'{"t":"ack","seq":%b}' % found[1])

    def _send(self, text: bytes) -> None:
        if self._packed:  # as browsers do, but for the packing
            size = len(text)
            text = b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + text + b"\0"
        first = 0xC1 if self._packed else 0x81
        size = (
            bytes([first, 0x80 | len(text)]) if len(text) < 126 else bytes([first, 0xFE]) + len(text).to_bytes(2, "big")
        )
        self._transport.write(size + _MASK + text)


async def _run(host: str, port: int, seconds: float, stalled: int, packed: bool) -> None:
    what = json.load(sys.stdin)
    watch = json.dumps(what["watch"]).encode()
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(_AT_ONCE)

    async def join(number: int, cookie: str) -> Viewer:
        async with gate:
            for attempt in range(_TRIES):
                _, viewer = await loop.create_connection(
                    lambda: Viewer(f"{host}:{port}", cookie, watch, stalls=number < stalled, packed=packed), host, port
                )
                try:
                    await asyncio.wait_for(viewer.ready, 60)
                    return viewer
                except ConnectionError:  # a handshake that took too long: a browser tries again too
                    await asyncio.sleep(0.2 * (attempt + 1))
            raise ConnectionError("a viewer could not connect")

    viewers = await asyncio.gather(*(join(number, cookie) for number, cookie in enumerate(what["cookies"])))
    print("ready", flush=True)
    await asyncio.sleep(SETTLE)
    live = viewers[stalled:]
    before = [(viewer.frames, viewer.bytes) for viewer in live]
    began = loop.time()
    await asyncio.sleep(seconds)
    took = loop.time() - began
    frames = sorted(viewer.frames - old for viewer, (old, _) in zip(live, before, strict=True))
    answer = {
        "seconds": took,
        "frames": sum(frames),
        "least": frames[0],
        "median": frames[len(frames) // 2],
        "bytes": sum(viewer.bytes - old for viewer, (_, old) in zip(live, before, strict=True)),
        "lost": sum(viewer.lost for viewer in live),
    }
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "packed"))
