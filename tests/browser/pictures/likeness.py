"""Whether a page still looks as its picture does: coarse enough for other numbers and ages, fine enough for a change.

Three comparisons: the landmarks and columns that are there; their places and colors; and the mean colors of a grid
over the whole picture. Pixels are not compared: the numbers are live.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Browser

from tests.browser.pictures.png import grid
from tests.browser.pictures.shots import Taken

#: Cells of the grid.
COLUMNS, ROWS = 48, 30
#: Pixels of the page by which a landmark may be elsewhere or be of another size: other digits, another font.
SLACK = 16
#: How far a cell's color may be off: of 255, the mean of red, green and blue.
SHADE = 14


def differences(
    before: bytes,
    then: Sequence[dict[str, Any]],
    now: Taken,
    browser: Browser,
    *,
    share: float,
) -> list[str]:
    """Return what differs between a picture with its layout and what is there now, in words; nothing when alike.

    `share` of the cells may have other colors.
    """
    return [*_landmarks(then, now.layout), *_colors(before, now.png, browser, share)]


def _landmarks(then: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]) -> list[str]:
    there, here = Counter(one["name"] for one in then), Counter(one["name"] for one in now)
    if there != here:
        gone, new = sorted((there - here).elements()), sorted((here - there).elements())
        return [*(f"{name} is gone" for name in gone), *(f"{name} is new" for name in new)]
    found = []
    for old, new in zip(then, now, strict=True):
        if any(abs(a - b) > SLACK for a, b in zip(old["box"], new["box"], strict=True)):
            found.append(f"{old['name']} was at {old['box']} (left, top, width, height), now at {new['box']}")
        if old["look"] != new["look"]:
            found.append(f"{old['name']} looked {old['look']} (color, background, border, size), now {new['look']}")
    return found


def _colors(before: bytes, after: bytes, browser: Browser, allowed: float) -> list[str]:
    old, new = (grid(png, browser, COLUMNS, ROWS) for png in (before, after))
    if old["width"] * new["height"] != new["width"] * old["height"]:
        return [f"{old['width']} × {old['height']} pixels have become {new['width']} × {new['height']}"]
    pairs = zip(old["cells"], new["cells"], strict=True)
    off = [sum(abs(a - b) for a, b in zip(was, now, strict=True)) / 3 for was, now in pairs]
    share = sum(shade > SHADE for shade in off) / len(off)
    return [f"{share:.1%} of the picture has other colors"] if share > allowed else []
