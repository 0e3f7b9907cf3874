"""Durations as they are typed and shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqadmin.display.durations import BadDuration, duration, parse_duration


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        (" 15 Min ", 900),
        ("1 h 30 min", 5_400),
        ("1h30m", 5_400),
        ("1.5 hours", 5_400),
        ("2 days", 172_800),
        ("1 w", 604_800),
        ("250 ms", 0.25),
        ("1 小时 30 分钟", 5_400),
        ("0", 0),
    ],
)
def test_durations_are_read_as_people_type_them(typed: str, seconds: float) -> None:
    assert parse_duration(typed) == seconds


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "soon",
        "-5 s",
        "5 min 5 min",
        "30 s 5 min",
        "5 min 30",
        "1,5 h",
        "1e3",
        "٣ s",
        "5 s\x00",
        "9" * 41,
        "nan",
        "∞",
    ],
)
def test_what_is_no_duration_is_refused(typed: str) -> None:
    with pytest.raises(BadDuration):
        parse_duration(typed)


@given(st.integers(min_value=0, max_value=366 * 86_400_000))
def test_what_is_shown_can_be_typed_again(ms: int) -> None:
    assert round(parse_duration(duration(ms / 1_000)) * 1_000) == ms
