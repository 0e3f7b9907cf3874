"""States without their colors: each has a shape of its own, whatever eyes, printer or theme, and a word beside it."""

import base64
import time
from collections.abc import Iterable
from itertools import combinations

import pytest
from playwright.sync_api import Locator, Page

from queues import Store
from tests.browser.conftest import NewPage
from tests.browser.wall.test_wall import LIVE, make_board

#: What differs from the corner's color, as text: which color it is plays no part.
SILHOUETTE = """async (png) => {
    const bytes = Uint8Array.from(atob(png), (character) => character.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const canvas = new OffscreenCanvas(image.width, image.height);
    const ink = canvas.getContext('2d');
    ink.drawImage(image, 0, 0);
    const { data } = ink.getImageData(0, 0, image.width, image.height);
    let text = '';
    for (let at = 0; at < data.length; at += 4) {
        const off = Math.max(...[0, 1, 2].map((n) => Math.abs(data[at + n] - data[n])));
        text += off > 40 ? '#' : '.';
    }
    return [image.width, text];
}"""


def silhouettes(page: Page, blank: Page, mark: Locator, attribute: str, values: Iterable[str]) -> dict[str, list[str]]:
    """Draw the mark of each state, given to the element that carries it, and return its rows without color."""
    drawn = {}
    for value in values:
        mark.evaluate(
            "(mark, [name, value]) => mark.closest(`[${name}]`).setAttribute(name, value)", [attribute, value]
        )
        mark.scroll_into_view_if_needed()
        box = mark.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        side = max(box["width"], box["height"]) + 4
        clip = {"x": x - side / 2, "y": y - side / 2, "width": side, "height": side}
        png = page.screenshot(clip=clip, animations="disabled")
        width, text = blank.evaluate(SILHOUETTE, base64.b64encode(png).decode())
        drawn[value] = [text[n : n + width] for n in range(0, len(text), width)]
    return drawn


def assert_told_apart(drawn: dict[str, list[str]]) -> None:
    """Every two differ in a tenth of what is drawn of them, or in their size."""
    for one, other in combinations(drawn, 2):
        a, b = drawn[one], drawn[other]
        inked = sum(row.count("#") for row in a)
        assert inked > 8, one
        if abs(len(a) - len(b)) > 2:
            continue
        differing = sum(x != y for row, line in zip(a, b, strict=False) for x, y in zip(row, line, strict=False))
        assert differing > inked / 10, f"{one} and {other} look the same:\n" + "\n".join([*a, "", *b])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_states_have_shapes_of_their_own(scheme: str, new_page: NewPage, store: Store) -> None:
    page, blank = new_page(color_scheme=scheme, device_scale_factor=3), new_page()
    blank.goto("about:blank")
    page.goto("/styleguide/")
    states = page.locator(".status[data-level]")
    levels, marks = (set(states.evaluate_all(f"all => all.map(each => each.dataset.{of})")) for of in ("level", "mark"))
    assert {"critical", "warning", "unknown", "ok"} <= levels
    assert {"paused", "attached", "empty"} <= marks
    mark = states.first.locator(".shape")
    drawn = silhouettes(page, blank, mark, "data-level", sorted(levels - {"gone"}))
    states.first.evaluate("each => { each.dataset.level = 'warning' }")
    assert_told_apart({**drawn, **silhouettes(page, blank, mark, "data-mark", ["paused", "attached", "empty"])})
    job = page.locator("[data-job] > * > .shape, [data-job] > .shape").first
    jobs = sorted(set(page.locator("[data-job]").evaluate_all("all => all.map(each => each.dataset.job)")))
    assert {"running", "waiting", "done", "canceled", "failed"} <= {*jobs}, jobs
    assert_told_apart(silhouettes(page, blank, job, "data-job", jobs))
    words = page.locator(".fresh[data-state]").evaluate_all("all => all.map(each => each.textContent.trim())")
    assert len(words) == len(set(words)) > 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_levels_of_a_wall_have_shapes_of_their_own(theme: str, new_page: NewPage, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    page, blank = new_page(device_scale_factor=2), new_page()
    blank.goto("about:blank")
    page.goto(f"/wall/{make_board(page, f'Shapes {theme} {time.time_ns()}', theme=theme)}")
    page.wait_for_selector(LIVE)
    cell = page.locator(".cell:not([hidden])").first
    cell.evaluate("each => each.replaceWith(each.cloneNode(true))")  # no frame changes this one
    mark = cell.locator(".tile-mark")
    drawn = silhouettes(page, blank, mark, "data-level", ["critical", "warning", "unknown", "ok"])
    assert_told_apart({**drawn, **silhouettes(page, blank, mark, "data-mark", ["paused", "attached", "empty"])})
    for tile in page.locator(".cell:not([hidden]) .tile-why").all():
        assert tile.inner_text().strip()
    # Else the wall's script says each second, and with each frame, how fresh it is.
    page.evaluate("Object.defineProperty(document.body, 'dataset', { value: { ...document.body.dataset } })")
    dot = page.locator(".freshness .dot")
    assert_told_apart(silhouettes(page, blank, dot, "data-fresh-state", ["live", "old", "closed"]))
