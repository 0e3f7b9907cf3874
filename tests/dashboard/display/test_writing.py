"""Formats, filters, listings and values by themselves."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from django.utils.translation import override

from pqadmin.dashboard.overview.ordering import Order, arrange
from pqadmin.display import format as write
from pqadmin.display.redaction import NOTHING
from pqadmin.display.values import MAX_NODES, show
from pqadmin.live.board.filters import parse
from pqadmin.live.board.overviews import Overview
from pqadmin.live.board.row_html import render_rows
from pqadmin.live.board.rows import Row
from pqadmin.live.board.sums import total_of
from pqadmin.live.words import detail_words, levels_words, reason_words
from queues import Pause, QueueStatus, Totals
from queues.admin import HealthCode, HealthLevel, HealthReason, HealthVerdict

VECTORS = json.loads(Path(__file__).parents[2].joinpath("format_vectors.json").read_text())
NOW = datetime(2026, 11, 20, 14, 2, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "format_one"),
    [
        ("number", write.number),
        ("brief", write.brief),
        ("counted", write.counted),
        ("rate", write.rate),
        ("share", write.share),
        ("age", write.age),
        ("about", write.about),
        ("countdown", write.countdown),
        ("size", write.size),
        ("visible", write.visible),
        ("priority_short", write.priority_short),
        ("priority_short_big", lambda digits: write.priority_short(int(digits))),
        ("mix", write.mix_levels),
    ],
)
def test_formats_write_what_the_vectors_say(kind: str, format_one: Callable[[Any], Any]) -> None:
    assert [[given, format_one(given)] for given, _ in VECTORS[kind]] == VECTORS[kind]


def at(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def test_moments_show_their_date_unless_it_is_today() -> None:
    for (moment, now), shown in VECTORS["clock"]:
        assert write.clock(at(moment), at(now)) == shown


def test_moments_follow_the_readers_time_zone() -> None:
    for (moment, now, zone), shown in VECTORS["clock_in_zone"]:
        with timezone.override(ZoneInfo(zone)):
            assert write.clock(at(moment), at(now)) == shown
            assert write.moment_and_utc(at(moment)).endswith(" UTC")


def test_previews_write_what_the_vectors_say() -> None:
    for value, more, shown in VECTORS["preview"]:
        assert write.preview(base64.b64decode(value), more=more) == shown


def test_a_line_does_not_end_within_why_queues_need_a_look() -> None:
    words = levels_words({"critical": 1, "warning": 0, "unknown": 2, "ok": 30})
    assert words == "1 critical · 2 unknown".replace(" ", "\u00a0").replace("·\u00a0", "· ")
    assert levels_words({"critical": 0, "warning": 0, "unknown": 0, "ok": 30}) == "all ok"


def test_bands_are_written_short() -> None:
    written = [write.band(*edges) for edges in ((None, 0), (5, 6), (10, 20), (1000, 100_000), (10**7, None))]
    assert written == ["<0", "5", "10–19", "1k–100k", "≥10M"]
    assert write.band("A", "N") == "A…N"
    assert write.band(0.5, 2.0) == "0.5…2"
    assert len(write.band(10**300, 10**400)) < 20


def verdict(*codes: HealthCode, level: HealthLevel = HealthLevel.WARNING) -> HealthVerdict:
    """Make a verdict with these reasons."""
    since = NOW.timestamp()
    reasons = tuple(HealthReason(code, level, since) for code in codes)
    return HealthVerdict(level if codes else HealthLevel.OK, since, reasons)


def row(name: str, ready: int = 0, *codes: HealthCode, level: HealthLevel = HealthLevel.WARNING, **more: Any) -> Row:
    """Make a row."""
    status = QueueStatus(
        id=hash(name),
        name=name,
        kind="priority",
        priority_type="int",
        change=1,
        totals=Totals(ready=ready, delayed=0, leased=0, dead=0, traffic={}),
        oldest=more.get("oldest"),
        pause=more.get("pause"),
    )
    return Row(status, NOW, verdict(*codes, level=level), more.get("rate_in"), more.get("rate_out"))


def names(rows: list[Row], *, order: Order | None = None, wanted: str = "") -> list[str]:
    """Arrange rows and return their names."""
    total = total_of(rows, queues=len(rows), as_of=NOW)
    seen = Overview(snapshot_version=1, at=NOW, rows=rows, summary=total)
    stars = frozenset({hash("deep")})
    listing = arrange(seen, order=order or Order(), wanted=parse(wanted, stars), after="", favorites=stars)
    return [row.status.name for group in listing.groups for row in group.rows]


def test_dead_items_are_told_with_the_time_when_some_were_seen_first() -> None:
    def told(code: HealthCode, limit: float) -> str:
        return detail_words(HealthReason(code, HealthLevel.WARNING, NOW.timestamp() - 60, limit=limit), NOW)

    at = write.clock(NOW - timedelta(minutes=1), NOW)
    assert told(HealthCode.DEAD, 1.0) == f"seen first at {at}"
    assert told(HealthCode.DEAD, 50.0) == f"since {at} · target 50"
    assert told(HealthCode.OLD, 900.0) == f"above the target of {write.age(900)} since {at}"
    assert told(HealthCode.DEEP, 50.0) == f"since {at}"


@pytest.mark.parametrize(
    ("language", "words", "detail"),
    [
        ("en", "no consumer for 4 min, until 14:01:11 UTC", "from 13:57:11 UTC"),
        ("zh-hans", "已有 4 min 没有消费者，至 14:01:11 UTC 为止", "始于 13:57:11 UTC"),
    ],
)
def test_a_stall_that_ended_is_told_with_its_end(language: str, words: str, detail: str) -> None:
    began, ended = NOW - timedelta(minutes=5), NOW - timedelta(minutes=1)
    reason = HealthReason(HealthCode.NO_CONSUMER, HealthLevel.CRITICAL, began.timestamp(), until=ended.timestamp())
    with override(language):
        told = reason_words(row("jobs", 9), reason, NOW, whole=True), detail_words(reason, NOW)
    assert told == (words, detail)


@pytest.mark.parametrize("code", [HealthCode.NO_CONSUMER, HealthCode.NONE_TAKEN, HealthCode.NOTHING_DONE])
def test_rows_in_which_nothing_is_taken_or_finished_are_marked_alike(code: HealthCode) -> None:
    assert "data-stalled" in render_rows([row("jobs", 5, code)], now=NOW, can_act=False)
    assert "data-stalled" not in render_rows([row("jobs", 5, HealthCode.DEAD)], now=NOW, can_act=False)


def test_favorites_come_first_when_wanted() -> None:
    rows = [row("a", 1, HealthCode.NO_CONSUMER, level=HealthLevel.CRITICAL), row("deep", 5)]
    assert names(rows) == ["a", "deep"]
    assert names(rows, order=Order.parse("", "", "favorites")) == ["deep", "a"]


def test_problems_come_first_by_level_then_by_reason_whatever_their_depth() -> None:
    rows = [
        row("a", 10**6),
        row("growing", 5, HealthCode.GROWING),
        row("paused", 5, HealthCode.PAUSED),
        row("attached", 50, HealthCode.ATTACHED, level=HealthLevel.UNKNOWN),
        row("stalled", 5, HealthCode.NO_CONSUMER, level=HealthLevel.CRITICAL),
        row("stalled-deep", 50, HealthCode.NO_CONSUMER, level=HealthLevel.CRITICAL),
        row("drift", 5, HealthCode.DRIFT),
    ]
    assert names(rows) == ["stalled", "stalled-deep", "growing", "drift", "paused", "attached", "a"]


def test_a_chosen_column_sorts_the_whole_table() -> None:
    rows = [row("dead", 2_000, HealthCode.DEAD), row("deep", 5_788), row("old", 7, HealthCode.OLD), row("mid", 1_200)]
    assert names(rows, order=Order.parse("", "-ready")) == ["deep", "dead", "mid", "old"]
    assert names(rows, order=Order.parse("", "ready")) == ["old", "mid", "dead", "deep"]


def test_groups_come_in_the_order_of_their_worst_member() -> None:
    rows = [
        row("a:1", 9),
        row("a:2", 1),
        row("b:1", 5),
        row("b:2", 7, HealthCode.NO_CONSUMER, level=HealthLevel.CRITICAL),
        row("c:1", 1, HealthCode.PAUSED),
    ]
    by_group = Order.parse("group", "")
    assert names(rows, order=by_group) == ["b:2", "b:1", "c:1", "a:1", "a:2"]
    assert names(rows, order=Order.parse("group", "ready")) == ["b:1", "b:2", "c:1", "a:2", "a:1"]
    total = total_of(rows, queues=len(rows), as_of=NOW)
    seen = Overview(snapshot_version=1, at=NOW, rows=rows, summary=total)
    listing = arrange(seen, order=by_group, wanted=parse(""), after="", shut=frozenset({"b:", "gone:"}))
    assert [(group.label, len(group.rows), group.shut) for group in listing.groups] == [
        ("b:", 0, True),
        ("c:", 1, False),
        ("a:", 2, False),
    ]
    assert (listing.shown, listing.matching) == (3, 5)


def test_unknown_rates_and_ages_sort_last_when_the_largest_come_first() -> None:
    rows = [row("unknown"), row("slow", rate_in=1.0), row("fast", rate_in=9.0)]
    assert names(rows, order=Order.parse("name", "-in")) == ["fast", "slow", "unknown"]
    aged = [row("none"), row("young", oldest=NOW), row("old", oldest=NOW - timedelta(hours=1))]
    assert names(aged, order=Order.parse("name", "-oldest")) == ["old", "young", "none"]


def test_the_oldest_claimable_item_is_in_no_queue_that_is_paused() -> None:
    pause = Pause(reason="", by="ann", since=NOW - timedelta(hours=3), until=None)
    ended = replace(pause, until=NOW - timedelta(hours=2))
    old, older, oldest = (row(f"{n}", 1, oldest=NOW - timedelta(hours=n)) for n in (1, 2, 3))

    def named(*rows: Row) -> str | None:
        return total_of(rows, queues=len(rows), as_of=NOW).oldest_queue

    paused = row("3", 1, oldest=NOW - timedelta(hours=3), pause=pause)
    assert named(old, older, oldest) == "3"
    assert named(old, older, paused) == "2"
    assert named(old, row("4", 1, oldest=NOW - timedelta(hours=4), pause=ended), paused) == "4"
    assert named(paused) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("depth>1k", ["deep"]),
        ("depth<=7", ["eu:de:aged", "odd[1]"]),
        ("age>5m", ["eu:de:aged"]),
        ("-age>5m", ["deep", "odd[1]"]),
        ("in>=2 in<3", ["deep"]),
        ("d*p", ["deep"]),
        ("odd[1]", ["odd[1]"]),
        ("odd[*", ["odd[1]"]),
        ("DEEP", ["deep"]),
        ("level:critical", ["eu:de:aged"]),
        ("-level:ok", ["eu:de:aged"]),
        ("reason:no-consumer", ["eu:de:aged"]),
        ("-reason:no-consumer", ["deep", "odd[1]"]),
        ("reason:dead", []),
        ("group:eu", ["eu:de:aged"]),
        ("group:eu:de", ["eu:de:aged"]),
        ("group:eu:d", []),
        ("group:*:de", ["eu:de:aged"]),
        ("is:favorite", ["deep"]),
        ("wait>1h", ["eu:de:aged"]),
        ("wait<1h", ["deep", "odd[1]"]),
        ("LEVEL:ok", []),
        ("", ["deep", "eu:de:aged", "odd[1]"]),
    ],
)
def test_filters_choose_rows(text: str, expected: list[str]) -> None:
    rows = [
        row(
            "eu:de:aged",
            7,
            HealthCode.NO_CONSUMER,
            level=HealthLevel.CRITICAL,
            oldest=NOW - timedelta(minutes=6),
            rate_out=0.0,
        ),
        row("deep", 5_000, rate_in=2.0, rate_out=5.0),
        row("odd[1]", 0, rate_out=0.0),
    ]
    assert sorted(names(rows, wanted=text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "depth>",
        "depth>1.2.3",
        "depth>1x",
        "age>1k",
        "level:odd",
        "reason:x",
        "state:ok",
        "problem:dead",
        "is:x",
        "kind:x",
        ">5",
        "a=b",
    ],
)
def test_a_part_that_is_not_understood_is_named_and_left_out(text: str) -> None:
    wanted = parse(f"{text} name")
    assert len(wanted.tests) == 1
    assert len(wanted.problems) == 1
    assert text in wanted.problems[0]


def test_filters_of_any_size_are_read_quickly() -> None:
    assert len(parse("x " * 10_000).tests) <= 20
    assert names([row("a" * 200)], wanted="*a" * 60 + "b") == []


def test_work_on_a_value_is_bounded() -> None:
    wide = show(json.dumps({f"k{n}": [n] * 100 for n in range(500)}).encode(), rules=NOTHING)
    assert wide.cut
    assert wide.html.count("<li") <= MAX_NODES + 10
    deep = show(b"[" * 900 + b"]" * 900, rules=NOTHING)
    assert deep.html.count("<details") <= 70
