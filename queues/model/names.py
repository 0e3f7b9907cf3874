"""Names of queues, and their display.

A name has 1 to 200 characters and at most 300 bytes in NFC: visible letters, marks and digits of any script, and
`. _ : -`. Foreign names may be anything, so display escapes whatever cannot be seen.
"""

import unicodedata

from queues.errors import BadName, Words, is_invisible

MAX_CHARACTERS = 200
MAX_BYTES = 300
PUNCTUATION = frozenset("._:-")
#: Browsers resolve these names as folders.
_DOTS = frozenset({".", ".."})


def canonical(name: str) -> str:
    """Return a name in NFC, as it is stored and looked up; raise `BadName` for what is no text."""
    if not isinstance(name, str):
        raise BadName("A queue's name is text, not {type}.", type=type(name).__name__)
    return unicodedata.normalize("NFC", name) if len(name) <= MAX_CHARACTERS * 4 else name


def check_name(name: str) -> str:
    """Return a valid name in NFC; raise `BadName`."""
    name = canonical(name)
    if not name:
        raise BadName("A queue needs a name.")
    if len(name) > MAX_CHARACTERS:
        raise BadName(
            "A queue's name has at most {most} characters; this one has {size:,}.", most=MAX_CHARACTERS, size=len(name)
        )
    for position, character in enumerate(name):
        if not _allowed(character, first=position == 0) or is_invisible(character):
            raise BadName(
                "A queue's name is made of letters, digits and . _ : - ; character {position} is {character}.",
                position=position + 1,
                character=_described(character),
            )
    if len(name) > MAX_CHARACTERS or len(name.encode()) > MAX_BYTES:
        raise BadName(
            "A queue's name has at most {most} bytes; this one has {size}.", most=MAX_BYTES, size=len(name.encode())
        )
    if name in _DOTS:
        raise BadName("A queue's name cannot be only dots.")
    return name


def _allowed(character: str, *, first: bool) -> bool:
    if character in PUNCTUATION:
        return True
    category = unicodedata.category(character)
    # Marks (vowel signs, accents without a composed form) belong to the letter before them.
    return category[0] == "L" or category == "Nd" or (category in ("Mn", "Mc") and not first)


def _described(character: str) -> Words:
    if character == " ":
        return Words("a space")
    if character.isprintable() and not is_invisible(character):
        return Words("“{character}” (U+{code:04X})", character=character, code=ord(character))
    return Words("U+{code:04X}, which cannot be seen", code=ord(character))
