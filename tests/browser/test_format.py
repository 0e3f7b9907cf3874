"""The browser writes numbers, rates, ages, sizes and moments exactly as Python does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from pqadmin.display import format as write

VECTORS = json.loads((Path(__file__).parents[1] / "format_vectors.json").read_text("utf-8"))

#: Calls a function of format.js.
CALL = """async ([name, calls]) => {
    const format = await import("/static/pqadmin/js/format.js");
    return calls.map(call => format[name](...call));
}"""


def test_the_browser_writes_what_python_writes(page: Page) -> None:
    page.goto("/")

    def written(name: str, calls: Sequence[Sequence[Any]]) -> Any:
        return page.evaluate(CALL, [name, calls])

    for kind in ("number", "brief", "counted", "rate", "age", "about", "countdown", "size"):
        vectors = VECTORS[kind]
        assert written(kind, [[vector[0]] for vector in vectors]) == [vector[1] for vector in vectors], kind
    for kind in ("clock", "clock_in_zone"):  # moments show their date unless it is today
        assert written("clock", [vector[0] for vector in VECTORS[kind]]) == [vector[1] for vector in VECTORS[kind]]
    digits = ["9" * 30, "-" + "1" * 22, "1000000000000000000000"]  # beyond JavaScript's numbers
    assert written("number", [[text] for text in digits]) == [write.number(int(text)) for text in digits]
