"""PNG files with a palette: what a page shows has few colors, and a document's picture should be small.

The browser decodes, counts colors and scales; nothing here needs an imaging library.
"""

import base64
import struct
import zlib
from typing import Any

from playwright.sync_api import Browser

#: Decodes a picture; shared by both functions below.
_PIXELS = """
    const image = new Image();
    image.src = 'data:image/png;base64,' + encoded;
    await image.decode();
    const draw = (width, height) => {
        const canvas = new OffscreenCanvas(width, height), context = canvas.getContext('2d');
        context.imageSmoothingQuality = 'high';
        context.drawImage(image, 0, 0, width, height);
        return context.getImageData(0, 0, width, height).data;
    };
"""
#: The most frequent colors that differ visibly are the palette; every other takes the nearest of them.
_PALETTE = f"""async (encoded) => {{ {_PIXELS}
    const [width, height] = [image.naturalWidth, image.naturalHeight], data = draw(width, height);
    const counts = new Map();
    for (let i = 0; i < data.length; i += 4) {{
        const color = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
        counts.set(color, (counts.get(color) || 0) + 1);
    }}
    const far = (a, b) => Math.abs((a >> 16) - (b >> 16)) + Math.abs(((a >> 8) & 255) - ((b >> 8) & 255))
        + Math.abs((a & 255) - (b & 255));
    const frequent = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
    let palette = [];
    for (const least of [10, 7, 5, 3, 1]) {{
        palette = [];
        for (const color of frequent) {{
            if (palette.length < 256 && palette.every((other) => far(color, other) >= least)) palette.push(color);
        }}
        if (palette.length >= 200) break;
    }}
    const nearest = new Map();
    for (const color of frequent) {{
        let best = 0;
        for (let n = 1; n < palette.length; n++) if (far(color, palette[n]) < far(color, palette[best])) best = n;
        nearest.set(color, best);
    }}
    const places = new Uint8Array(width * height);
    for (let i = 0, n = 0; i < data.length; i += 4, n++) {{
        places[n] = nearest.get((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    }}
    let text = '';
    for (let i = 0; i < places.length; i += 32768) text += String.fromCharCode(...places.subarray(i, i + 32768));
    return {{ width, height, palette, places: btoa(text) }};
}}"""
_GRID = f"""async ([encoded, columns, rows]) => {{ {_PIXELS}
    const half = draw(columns * 8, rows * 8), cells = [];
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {{
        const sums = [0, 0, 0];
        for (let y = 0; y < 8; y++) for (let x = 0; x < 8; x++) {{
            const at = ((row * 8 + y) * columns * 8 + column * 8 + x) * 4;
            for (const part of [0, 1, 2]) sums[part] += half[at + part];
        }}
        cells.push(sums.map((sum) => Math.round(sum / 64)));
    }}
    return {{ width: image.naturalWidth, height: image.naturalHeight, cells }};
}}"""


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


def grid(png: bytes, browser: Browser, columns: int, rows: int) -> dict[str, Any]:
    """Return the picture's width and height, and the mean color of each cell of a grid laid over it, row by row."""
    found: dict[str, Any] = _evaluate(browser, _GRID, [_encoded(png), columns, rows])
    return found


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
