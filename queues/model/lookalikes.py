"""Lookalikes: invisible characters and confusable names, by Unicode's own data.

Invisible are control, format, separator, private and unassigned characters, and those that are
blank by their Unicode names: fillers (U+3164), variation selectors, the grapheme joiner, inherent vowels, blanks.

A name looks like another one where a word of it mixes letters of Latin, Cyrillic and Greek (`оrders` with a Cyrillic
о), or has letters that are another form of ASCII ones (full-width, mathematical). Words end at `. _ : -`. A word that
is Cyrillic or Greek as a whole is a word of a language, and is not reported.
"""

import re
import unicodedata

#: Scripts with letters that look alike.
_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK"})
_WORDS = re.compile(r"[^._:\-]+")


def lookalikes(name: str) -> tuple[str, ...]:
    """Return the letters of a name that look like other letters, in their order."""
    if name.isascii():
        return ()
    found: dict[str, None] = {}
    for word in _WORDS.findall(name):
        scripts = {character: _script(character) for character in word}
        latin = "LATIN" in scripts.values()
        mixed = len(set(scripts.values()) - {""}) > 1
        for character, script in scripts.items():
            other = script not in ("", "LATIN") if latin else script == "GREEK"
            if (mixed and other) or _is_another_form(character):
                found[character] = None
    return tuple(found)


def described(characters: tuple[str, ...]) -> str:
    """Return characters with their codes and names: “о U+043E CYRILLIC SMALL LETTER O”."""
    return ", ".join(f"{each} U+{ord(each):04X} {unicodedata.name(each, '?')}" for each in characters)


def _script(character: str) -> str:
    first = unicodedata.name(character, "").partition(" ")[0]
    return first if first in _SCRIPTS and unicodedata.category(character)[0] == "L" else ""


def _is_another_form(character: str) -> bool:
    plain = unicodedata.normalize("NFKC", character)
    return plain != character and plain.isascii()
