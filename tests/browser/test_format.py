"""The browser writes numbers, rates, ages, sizes and the priority mix exactly as Python does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page

VECTORS = json.loads((Path(__file__).parents[1] / "format_vectors.json").read_text("utf-8"))


@pytest.mark.parametrize("kind", ["number", "rate", "age", "size"])
def test_vectors(kind: str, page: Page) -> None:
    page.goto("/")
    written = page.evaluate(
        """async ([kind, inputs]) => {
            const main = document.querySelector('script[type=module]').src;
            const source = await (await fetch(main)).text();
            const name = [...source.matchAll(/from\\s*["']\\.\\/(row[^"']*)["']/g)][0][1];
            const row = await (await fetch(new URL(name, main))).text();
            const path = [...row.matchAll(/from\\s*["']\\.\\/(format[^"']*)["']/g)][0][1];
            const format = await import(new URL(path, main));
            return inputs.map(input => format[kind](input));
        }""",
        [kind, [vector[0] for vector in VECTORS[kind]]],
    )
    assert written == [vector[1] for vector in VECTORS[kind]]


def test_numbers_beyond_javascript(page: Page) -> None:
    page.goto("/")
    digits = "9" * 30
    assert f"{int(digits):,}".replace(",", "\u202f") == page.evaluate(
        r"digits => digits.replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f')", digits
    )
