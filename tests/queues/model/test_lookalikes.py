"""Characters that cannot be seen, and names that look like other names."""

import pytest

from queues import open_store
from queues.errors import BadName, display_name, is_invisible
from queues.model.lookalikes import lookalikes
from queues.model.names import check_name

#: Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt, first and last of each range.
IGNORABLE = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)


def test_whatever_unicode_says_is_ignored_is_invisible() -> None:
    seen = [hex(code) for first, last in IGNORABLE for code in range(first, last + 1) if not is_invisible(chr(code))]
    assert seen == []
    assert is_invisible("\u2800"), "the blank Braille pattern"


@pytest.mark.parametrize(
    "name", ["orders:eu.v2", "заказы", "注文:東京:返金", "قائمة", "Übergröße", "ทำ", "हिन्दी", "한글", "é"]
)
def test_letters_of_every_language_can_be_seen_and_look_like_themselves(name: str) -> None:
    assert not any(map(is_invisible, name))
    assert lookalikes(name) == ()
    assert check_name(name) == name
    assert display_name(name) == name


@pytest.mark.parametrize("letter", ["\u3164", "\u115f", "\u1160", "\uffa0", "\u034f", "\ufe0f", "\u17b4", "\U000e0100"])
def test_a_new_queues_name_has_no_letter_that_cannot_be_seen(letter: str) -> None:
    for name in (f"a{letter}", f"a{letter}b"):
        with pytest.raises(BadName, match=f"U\\+{ord(letter):04X}, which cannot be seen"):
            check_name(name)
        assert f"\\u{{{ord(letter):x}}}" in display_name(name)
    with open_store("memory:") as store:
        store.create_queue("jobs")
        for make in (lambda: store.create_queue(f"a{letter}"), lambda: store.rename_queue("jobs", f"a{letter}")):
            with pytest.raises(BadName):
                make()
        assert list(store.directory()) == ["jobs"]


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("\u043erders", "\u043e"),  # a Cyrillic о
        ("orders:p\u0430id", "\u0430"),
        ("\u0430\u03bf", "\u03bf"),  # Cyrillic and Greek
        ("\uff42oss", "\uff42"),  # full width
        ("\U0001d41boss", "\U0001d41b"),
        ("заказы:orders", ""),  # two words of two languages
        ("заказы-v2", ""),
        ("αβγ.v1", ""),
    ],
)
def test_a_name_of_mixed_scripts_looks_like_another(name: str, letters: str) -> None:
    assert lookalikes(name) == tuple(letters)


def test_the_doctor_notes_names_that_look_like_other_names() -> None:
    with open_store("memory:") as store:
        store.create_queue("orders")
        store.create_queue("\u043erders")
        found = store.doctor.examine()
    assert found.healthy
    assert [note for note in found.notes if "looks like another one" in note] == [
        "The name “\u043erders” looks like another one: \u043e U+043E CYRILLIC SMALL LETTER O."
    ]
