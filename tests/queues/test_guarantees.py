"""docs/reference/guarantees.md says of every verb what it promises, and names only tests that there are."""

import re
from pathlib import Path

import pytest

from queues import Actions, FifoQueue, PriorityQueue, Queue, Store

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "reference" / "guarantees.md").read_text("utf-8")
VERBS = DOCUMENT.partition("## Verb by verb")[2].partition("\n## ")[0]
#: These keep and change nothing: they close, wake, spare reads, help with errors, and run the rest.
NO_VERBS = {"close", "interrupt", "refuse_repeated", "remember", "run", "suggesting"}
CLASSES = (Queue, PriorityQueue, FifoQueue, Store, Actions)


def verbs(of: type) -> list[str]:
    public = [name for name in dir(of) if not name.startswith("_") and name not in NO_VERBS]
    return [name for name in public if callable(getattr(of, name))]


@pytest.mark.parametrize("of", CLASSES)
def test_every_verb_has_a_row(of: type) -> None:
    named = {name for row in VERBS.splitlines() for name in re.findall(r"`([a-z_]+)`", row.partition(" | ")[0])}
    assert set(verbs(of)) - named == set()


def test_no_row_is_of_a_verb_that_there_is_not() -> None:
    known = {name for of in CLASSES for name in verbs(of)} | {
        "delay",
        "due",
        "timeout",
    }
    rows = [row for row in VERBS.splitlines() if row.startswith("| ") and not row.startswith("| verb")]
    assert {name for row in rows for name in re.findall(r"`([a-z_]+)`", row.partition(" | ")[0])} <= known
    assert all(row.count(" | ") == 4 and row.rstrip(" |").endswith(".py`") for row in rows)


def test_every_test_that_is_named_is_there() -> None:
    names = set(re.findall(r"`((?:tests/[a-z_/]+/)?test_[a-z_]+\.py)`", DOCUMENT))
    assert len(names) > 50
    for name in names:
        assert list(ROOT.glob(name if "/" in name else f"tests/**/{name}")), name
