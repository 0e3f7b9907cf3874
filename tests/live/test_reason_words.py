"""One reason of a verdict in words, as a queue's page tells it: with its numbers of now, in both languages."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils.translation import override

from pqadmin.display.format import clock
from pqadmin.live.board.rows import Row
from pqadmin.live.words import reason_words
from queues import open_store
from queues.admin import TOLD_AT_LEAST, HealthCode, HealthLevel, HealthReason, HealthVerdict

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((ROOT / "tests/format_vectors.json").read_text("utf-8"))["reason"]


@pytest.mark.parametrize(("told", "counts", "english", "chinese"), VECTORS)
def test_a_reason_is_told_in_plain_words(told: dict[str, Any], counts: Any, english: str, chinese: str) -> None:
    with open_store("memory:") as store:
        status, now = store.create_queue("jobs").status(), store.now()
    since = (now - timedelta(minutes=5)).timestamp()
    reason = HealthReason(HealthCode(told["code"]), HealthLevel.WARNING, since, told["value"], told["limit"])
    verdict = HealthVerdict(HealthLevel.WARNING, since, (reason,))
    row = Row(replace(status, totals=replace(status.totals, **counts)), now, verdict)
    for language, words in (("en", english), ("zh-hans", chinese)):
        with override(language):
            assert reason_words(row, reason, now, whole=True) == words


def test_among_other_queues_many_dead_items_are_told_as_a_bound_of_the_exact_number() -> None:
    with open_store("memory:") as store:
        status, now = store.create_queue("jobs").status(), store.now()
    reason = HealthReason(HealthCode.DEAD, HealthLevel.WARNING, now.timestamp(), 20.0, 1.0)
    verdict = HealthVerdict(HealthLevel.WARNING, now.timestamp(), (reason,))
    row = Row(replace(status, totals=replace(status.totals, dead=32)), now, verdict)
    assert reason_words(row, reason, now) == "at least 20 dead"
    assert reason_words(row, reason, now, whole=True) == "32 dead"


@pytest.mark.parametrize(("rate", "words"), [(5.0, "grew about 5/s, until "), (None, "grew, until ")])
def test_growth_that_ended_is_told_in_the_past(rate: float | None, words: str) -> None:
    with open_store("memory:") as store:
        status, now = store.create_queue("jobs").status(), store.now()
    ended = now - timedelta(minutes=1)
    reason = HealthReason(HealthCode.GROWING, HealthLevel.WARNING, 0.0, rate, None, ended.timestamp())
    verdict = HealthVerdict(HealthLevel.WARNING, now.timestamp(), (reason,))
    assert reason_words(Row(status, now, verdict), reason, now) == words + clock(ended, now)


def test_scripts_tell_dead_items_roughly_from_the_same_number_on() -> None:
    script = (ROOT / "static/pqadmin/js/words.js").read_text("utf-8")
    assert re.findall(r"^const AT_LEAST = (\d+);", script, re.MULTILINE) == [str(TOLD_AT_LEAST)]
