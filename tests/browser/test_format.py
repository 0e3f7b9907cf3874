"""The browser writes numbers, rates, ages, sizes and moments exactly as Python does."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.utils.translation import override
from playwright.sync_api import Page

from pqadmin.display import format as write
from pqadmin.live.words import words

VECTORS = json.loads((Path(__file__).parents[1] / "format_vectors.json").read_text("utf-8"))

#: Calls a function of format.js.
CALL = """async ([name, calls]) => {
    const format = await import("/static/pqadmin/js/format.js");
    return calls.map(call => format[name](...call));
}"""

#: Tells one reason in the words of a language.
TELL = """async ([language, words, vectors]) => {
    globalThis.pqadminWords = words;
    const { reasonWords } = await import(`/static/pqadmin/js/words.js?${language}`);
    return vectors.map(([reason, row]) => reasonWords({ ...row, pause: null }, { ...reason, since: 0 }, 300_000, true));
}"""


def test_the_browser_tells_a_reason_as_python_does(page: Page) -> None:
    page.goto("/")
    for language, told in (("en", 2), ("zh-hans", 3)):
        with override(language):
            shown = page.evaluate(TELL, [language, words(), VECTORS["reason"]])
        assert shown == [vector[told] for vector in VECTORS["reason"]]


#: Tells a stall of four minutes that ended a minute ago, at 00:04:00 UTC.
TELL_ENDED = """async () => {
    const { detailWords, reasonWords } = await import("/static/pqadmin/js/words.js");
    const reason = { code: "no-consumer", value: null, limit: null, since: 0, until: 240_000 };
    const growth = { ...reason, code: "growing", value: 5 };
    return [reason, growth, { ...growth, value: null }].map((told) => [
        reasonWords({ oldest: null, pause: null }, told, 300_000, true), detailWords(told, 300_000),
    ]);
}"""


def test_the_browser_tells_the_end_of_a_stall_as_python_does(page: Page) -> None:
    page.goto("/")
    now = datetime.fromtimestamp(300, UTC)
    ended, began = (write.clock(datetime.fromtimestamp(second, UTC), now) for second in (240, 0))
    assert page.evaluate(TELL_ENDED) == [
        [f"no consumer for 4 min, until {ended}", f"from {began}"],
        [f"grew about 5/s, until {ended}", f"from {began}"],
        [f"grew, until {ended}", f"from {began}"],
    ]


def test_the_browser_writes_what_python_writes(page: Page) -> None:
    page.goto("/")

    def written(name: str, calls: Sequence[Sequence[Any]]) -> Any:
        return page.evaluate(CALL, [name, calls])

    for kind in ("number", "brief", "counted", "rate", "share", "age", "about", "countdown", "size"):
        vectors = VECTORS[kind]
        assert written(kind, [[vector[0]] for vector in vectors]) == [vector[1] for vector in vectors], kind
    for kind in ("clock", "clock_in_zone"):  # moments show their date unless it is today
        assert written("clock", [vector[0] for vector in VECTORS[kind]]) == [vector[1] for vector in VECTORS[kind]]
    digits = ["9" * 30, "-" + "1" * 22, "1000000000000000000000"]  # beyond JavaScript's numbers
    assert written("number", [[text] for text in digits]) == [write.number(int(text)) for text in digits]
