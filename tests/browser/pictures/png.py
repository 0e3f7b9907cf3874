"""PNG files with a palette: what a page shows has few colors, and a document's picture should be small.

The browser decodes and counts colors; nothing here needs an imaging library.
"""

import base64
import struct
import zlib
from typing import Any

from playwright.sync_api import Browser

#: The most frequent colors that differ visibly are the palette; every other takes the nearest of them.
_PALETTE = """async (encoded) => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + encoded;
    await image.decode();
    const [width, height] = [image.naturalWidth, image.naturalHeight];
    const context = new OffscreenCanvas(width, height).getContext('2d');
    context.drawImage(image, 0, 0);
    const data = context.getImageData(0, 0, width, height).data;
    const counts = new Map();
    for (let i = 0; i < data.length; i += 4) {
        const color = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
        counts.set(color, (counts.get(color) || 0) + 1);
    }
    const far = (a, b) => Math.abs((a >> 16) - (b >> 16)) + Math.abs(((a >> 8) & 255) - ((b >> 8) & 255))
        + Math.abs((a & 255) - (b & 255));
    const frequent = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
    let palette = [];
    for (const least of [10, 7, 5, 3, 1]) {
        palette = [];
        for (const color of frequent) {
            if (palette.length < 256 && palette.every((other) => far(color, other) >= least)) palette.push(color);
        }
        if (palette.length >= 200) break;
    }
    const nearest = new Map();
    for (const color of frequent) {
        let best = 0;
        for (let n = 1; n < palette.length; n++) if (far(color, palette[n]) < far(color, palette[best])) best = n;
        nearest.set(color, best);
    }
    const places = new Uint8Array(width * height);
    for (let i = 0, n = 0; i < data.length; i += 4, n++) {
        places[n] = nearest.get((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    }
    let text = '';
    for (let i = 0; i < places.length; i += 32768) text += String.fromCharCode(...places.subarray(i, i + 32768));
    return { width, height, palette, places: btoa(text) };
}"""


def shrink(png: bytes, browser: Browser) -> bytes:
    """Return the picture with at most 256 colors, packed as tightly as zlib can."""
    found = _evaluate(browser, _PALETTE, _encoded(png))
    width, height, places = found["width"], found["height"], base64.b64decode(found["places"])
    lines = b"".join(b"\0" + places[row * width : (row + 1) * width] for row in range(height))
    colors = b"".join(color.to_bytes(3, "big") for color in found["palette"])
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", colors),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _encoded(png: bytes) -> str:
    return base64.b64encode(png).decode()


def _evaluate(browser: Browser, script: str, argument: Any) -> Any:
    page = browser.new_page()
    try:
        return page.evaluate(script, argument)
    finally:
        page.close()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
