"""Priorities as people type them."""

import pytest

from queues.errors import BadPriority
from queues.model.priority import normalize, parse_priority


@pytest.mark.parametrize(
    ("text", "priority_type", "expected"),
    [
        ("5", "int", 5),
        (" -5 ", "int", -5),
        ("+7", "int", 7),
        ("1" * 300, "int", int("1" * 300)),
        ("1.5", "float", 1.5),
        ("1e3", "float", 1000.0),
        ("-0.0", "float", 0.0),
        ("7", "float", 7.0),
        (" text kept as it is ", "str", " text kept as it is "),
        ("", "str", ""),
    ],
)
def test_what_people_type_is_read(text: str, priority_type: str, expected: object) -> None:
    parsed = parse_priority(text, priority_type)
    assert parsed == expected
    assert type(parsed) is type(expected)
    assert str(parsed) == str(expected)


@pytest.mark.parametrize("priority_type", ["int", "float"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "high",
        "1_000",
        "٣",
        "1" * 1000,
        "1" * 100_000,
        "--5",
        "0x10",
        "NaN",
        "inf",
        "1e400",
        "True",
        "1,5",
        "\x00",
    ],
)
def test_what_is_no_number_is_refused(text: str, priority_type: str) -> None:
    with pytest.raises(BadPriority) as caught:
        parse_priority(text, priority_type)
    assert len(str(caught.value)) < 200


def test_a_fraction_is_no_whole_number() -> None:
    with pytest.raises(BadPriority):
        parse_priority("1.0", "int")


def test_a_whole_number_that_no_float_holds_is_not_rounded() -> None:
    assert parse_priority("9007199254740992", "float") == 2.0**53
    for text in ("9007199254740993", "1" * 400):
        with pytest.raises(BadPriority, match="exactly"):
            parse_priority(text, "float")


def test_text_is_kept_in_one_spelling() -> None:
    assert normalize("cafe\u0301", "str") == "café"


@pytest.mark.parametrize(
    ("priority_type", "words"), [("int", "a whole number"), ("float", "a number"), ("str", "text")]
)
def test_a_missing_priority_is_asked_for(priority_type: str, words: str) -> None:
    with pytest.raises(BadPriority) as caught:
        normalize(None, priority_type)
    assert str(caught.value) == f"A priority is needed: {words}."
