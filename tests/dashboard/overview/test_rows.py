"""A row is built once for all readers, with parts of each reader's own: ages, languages, stars, acts."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.utils.translation import override

from pqadmin.live.board.board import Board
from pqadmin.live.board.row_html import render_rows
from pqadmin.live.board.rows import Row
from queues import open_store


@pytest.fixture
def row(tmp_path: Path) -> Row:
    board = Board()
    with open_store(f"lmdb:{tmp_path / 'store'}") as store:
        jobs = store.create_queue("jobs", priority_type="str")
        # What stands for a moment in the row, and what HTML has no sign for.
        jobs.push(b"\x000\x00 1 \x00", priority="\x000\x00")
        board.apply(store.snapshot([jobs.id]), 0.0)
        made = board.row(jobs.id, 0.0)
    assert made is not None
    return made


def test_ages_go_on_in_a_row_that_stays_the_same(row: Row) -> None:
    early, late = (row.status.oldest + timedelta(seconds=seconds) for seconds in (20, 90))
    first = str(render_rows([row], now=early, can_act=True))
    second = str(render_rows([row], now=late, can_act=True))
    assert first.count(">20 s<") == 3, "oldest, and the age of both ends"
    assert second == first.replace(">20 s<", ">90 s<")
    assert "\0" not in first


def test_a_row_is_shown_anew_when_anything_about_it_differs(row: Row) -> None:
    now = row.as_of

    def shown(of: Row = row, *, acts: bool = True, line: str = "", star: bool = False) -> str:
        stars = {of.status.id} if star else set()
        html = render_rows([of], now=now, can_act=True, acts_on=lambda _: acts, stars=stars, lines={of.status.id: line})
        return str(html)

    plain = shown()
    assert "push/" in plain
    assert "push/" not in shown(acts=False)
    assert 'aria-pressed="true"' in shown(star=True)
    assert re.search(r'<path d="M0 (\d+)V5h3V\1z"/>', shown(line="M0 5h3")), "the area below the line"
    assert shown() == plain
    changed = replace(row, rate_in=12.0)
    assert re.search(r'data-field="rate-in"[^>]*>12<', shown(changed))
    renamed = replace(row, status=replace(row.status, name="<b>other"))
    assert re.search(r'data-queue="&lt;b&gt;other"', shown(renamed))
    with override("zh-hans"):
        chinese = shown()
    assert chinese != plain
    assert shown() == plain


def test_what_is_pushed_to_or_starred_is_in_the_name_without_scripts(row: Row) -> None:
    queue = replace(row, status=replace(row.status, name='eu:"jobs" & more'))
    fifo = replace(row, status=replace(row.status, id=7, name="mail", kind="fifo"))
    html = str(render_rows([queue, fifo], now=row.as_of, can_act=True))
    named = [
        (unescape(label), words) for label, words in re.findall(r'data-part="push" aria-label="([^"]*)">([^<]*)<', html)
    ]
    assert named == [
        ('Push: eu:"jobs" & more', "Push"),
        ("Enqueue: mail", "Enqueue"),
    ]
    labels = [re.sub("<[^>]*>", "", label) for label in re.findall('<label>(.*?)<button class="star" [^>]*>', html)]
    assert [unescape(label) for label in labels] == ['eu:"jobs" & more', "mail"], "a star is named by its label"


def test_a_value_is_text_and_no_markup(row: Row) -> None:
    assert row.status.min is not None
    item = replace(row.status.min, raw=b"</q><b a='1'>\"&amp;")
    html = str(render_rows([replace(row, status=replace(row.status, min=item))], now=row.as_of, can_act=True))
    found = re.search(r'<q data-part="value">([^<>]*)</q>', html)
    assert unescape(found[1]) == "</q><b a='1'>\"&amp;"
