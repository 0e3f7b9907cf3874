"""The browser writes numbers, rates, ages, sizes and moments exactly as Python does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from pqadmin.display import format as write

VECTORS = json.loads((Path(__file__).parents[1] / "format_vectors.json").read_text("utf-8"))

#: Calls a function of format.js.
CALL = """async ([name, calls]) => {
    const format = await import("/static/pqadmin/js/format.js");
    return calls.map(call => format[name](...call));
}"""


def written(page: Page, name: str, calls: Sequence[Sequence[Any]]) -> Any:
    """Call a function of format.js with each list of arguments."""
    page.goto("/")
    return page.evaluate(CALL, [name, calls])


@pytest.mark.parametrize("kind", ["number", "brief", "counted", "rate", "age", "countdown", "size"])
def test_vectors(kind: str, page: Page) -> None:
    calls = [[vector[0]] for vector in VECTORS[kind]]
    assert written(page, kind, calls) == [vector[1] for vector in VECTORS[kind]]


def test_moments_show_their_date_unless_it_is_today(page: Page) -> None:
    assert written(page, "clock", [vector[0] for vector in VECTORS["clock"]]) == [v[1] for v in VECTORS["clock"]]


def test_moments_in_a_time_zone(page: Page) -> None:
    vectors = VECTORS["clock_in_zone"]
    assert written(page, "clock", [vector[0] for vector in vectors]) == [vector[1] for vector in vectors]


def test_numbers_beyond_javascript(page: Page) -> None:
    digits = ["9" * 30, "-" + "1" * 22, "1000000000000000000000"]
    assert written(page, "number", [[text] for text in digits]) == [write.number(int(text)) for text in digits]
