"""Redaction: the parts of values that pages hide, by the names of their keys.

Rules are names of keys, or globs (`*` and `?`), compared without regard to case, `_`, `-` and spaces: `api_key` hides
the values of `apiKey`, `API-Key` and `api_key`. Rules of the site (PQADMIN_REDACT) hold for every queue, rules of a
queue for its items; a rule that begins with `!` shows again what another one hides.

Nothing here reads the store: rules come with a queue's status. JSON is searched as bytes, as far as it goes: the
beginning of a value hides at least what the whole value hides there.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from django.conf import settings

from queues.admin import name_pattern

#: The text in place of a hidden part.
MARK = "[redacted]"
#: Longer keys are not compared: their value is hidden if a part of a rule is in them.
_MAX_KEY = 1_000

#: A part of a value: its first byte, and the one behind its last.
Span = tuple[int, int]

_STRING = re.compile(rb'"((?:[^"\\]++|\\.)*+)("?)', re.DOTALL)
#: A string, and the colon that makes a key of it.
_KEY = re.compile(rb'"((?:[^"\\]++|\\.)*+)(?:"([ \t\r\n]*+:[ \t\r\n]*+)?)?', re.DOTALL)
_NESTING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}]*+")
_ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.", re.DOTALL)
_IGNORED = re.compile(r"[-_ ]")


class Redaction:
    """Rules together. Falsy when they hide nothing. Never changes, so that all threads may share it."""

    def __init__(self, rules: Sequence[str] = ()) -> None:
        self._hidden = _compiled([rule for rule in rules if not rule.startswith("!")])
        self._shown = _compiled([rule[1:] for rule in rules if rule.startswith("!")])
        self._needles = _needles(rules)

    def __bool__(self) -> bool:
        return self._hidden is not None

    def hides(self, key: str) -> bool:
        """Return whether the value of this key is hidden."""
        if len(key) > _MAX_KEY:
            return self._hidden is not None and self._may_hide(key.encode("utf-8", "replace"))
        plain = _plain(key)
        if self._hidden is None or not self._hidden.fullmatch(plain):
            return False
        return self._shown is None or not self._shown.fullmatch(plain)

    def spans(self, value: bytes, *, anywhere: bool = False) -> list[Span]:
        """Return the values of hidden keys in JSON, which may be cut off anywhere.

        Other bytes are searched the same way: a quoted key with a colon behind it counts there too. With
        `anywhere` JSON may begin behind other bytes, so every quote may begin a key, not only each second one.
        """
        found: list[Span] = []
        at = 0
        if self._hidden is None or not self._may_hide(value):
            return found
        while string := _KEY.search(value, at):
            at = string.end()
            raw, colon = string.groups()
            if not colon:
                if b"\\" in raw and self.covers(unescaped(raw)):
                    found.append((string.start(), at if value[at - 1 : at] == b'"' else len(value)))
                elif anywhere and at - 1 > string.start() and value[at - 1 : at] == b'"':
                    at -= 1
            elif self.hides(unescaped(raw)):
                end = end_of(value, at)
                found.append((at, end))
                at = end
            elif b"\\" in raw and self.covers(unescaped(raw)):
                found.append((string.start(), value.index(b'"', string.end(1)) + 1))
        return found

    def covers(self, text: str) -> bool:
        """Return whether a text inside a value is JSON with a hidden part. Then all of the text is hidden."""
        return '"' in text and bool(self.spans(text.encode("utf-8", "replace")))

    def _may_hide(self, value: bytes) -> bool:
        """Return whether a look at every key is worth it: most values hold none of the names, and nothing escaped."""
        if self._needles is None or b"\\" in value or not value.isascii():
            return True
        plain = value.lower().translate(None, b"-_ ")
        return any(needle in plain for needle in self._needles)


def rules_of(redact: tuple[str, ...]) -> Redaction:
    """Return the rules of a queue together with those of the site."""
    return _together(redact, settings.PQADMIN_REDACT)


@lru_cache(maxsize=1_024)
def _together(queue: tuple[str, ...], site: tuple[str, ...]) -> Redaction:
    return Redaction((*site, *queue))


def covered(value: bytes, spans: Sequence[Span], mark: bytes) -> bytes:
    """Return the value with a mark in the place of each part."""
    pieces = []
    at = 0
    for begin, end in spans:
        pieces += [value[at:begin], mark]
        at = end
    return b"".join([*pieces, value[at:]])


def _compiled(rules: Sequence[str]) -> re.Pattern[str] | None:
    globs = tuple(plain for rule in rules if (plain := _plain(rule.strip())))
    return name_pattern(globs) if globs else None


def _needles(rules: Sequence[str]) -> tuple[bytes, ...] | None:
    """Return for each rule what is in every ASCII key that it fits. None: a rule fits keys of any letters."""
    needles = set()
    for rule in rules:
        plain = _plain(rule.strip())
        if not plain or rule.startswith("!"):
            continue
        part = max(re.split(r"[*?]", plain), key=len)
        if not part:
            return None
        if part.isascii():  # else it is in no ASCII key
            needles.add(part.encode())
    return tuple(needles)


def _plain(key: str) -> str:
    return _IGNORED.sub("", unicodedata.normalize("NFC", key).casefold())


def unescaped(raw: bytes) -> str:
    """Return the text of a JSON string. An escape that is cut off or invalid is kept."""
    text = raw.decode("utf-8", "replace")
    if "\\" not in text:
        return text
    with suppress(ValueError):
        return str(json.loads(f'"{text}"', strict=False))
    return _ESCAPE.sub(_char, text)


def _char(escape: re.Match[str]) -> str:
    try:
        return str(json.loads(f'"{escape[0]}"'))
    except ValueError:
        return escape[0]


def end_of(value: bytes, at: int) -> int:
    """Return where the JSON value that begins at `at` ends: behind everything when that is cut off."""
    first = value[at : at + 1]
    if first == b'"':
        string = _STRING.match(value, at)
        return string.end() if string is not None and string[2] else len(value)
    if first not in (b"{", b"["):
        scalar = _SCALAR.match(value, at)
        return at if scalar is None else scalar.end()
    depth = 0
    for token in _NESTING.finditer(value, at):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return token.end()
    return len(value)


#: Hides nothing.
NOTHING = Redaction()
