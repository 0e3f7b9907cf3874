r"""Prefixes of attached queues as people write and read them: a tuple, hexadecimal digits, or escaped bytes.

`("legacy", "jobs")` is packed by the tuple layer; `0x15ff` and `\x15\xff` are bytes as they are, the latter as fdbcli
prints them; `b'\x15'` is Python's notation of the same. Strict: what can be read in two ways is refused.
"""

import ast
import re
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from pqadmin.display import format as write
from queues.admin import describe_element, unpack_tuple

#: Longer texts are no prefix of at most 256 bytes, however they are written.
MAX_TYPED = 2_000
_ESCAPED = re.compile(r"(?:[ -\[\]-~]|\\x[0-9a-fA-F]{2}|\\\\)+")
_PIECE = re.compile(r"\\x([0-9a-fA-F]{2})|\\(\\)|(.)")


class BadPrefixText(ValueError):
    """The text is no prefix; the message says why."""


def parse_prefix(text: str) -> bytes | tuple[Any, ...]:
    """Read a prefix as typed; raise `BadPrefixText`."""
    text = text.strip()
    if not text:
        raise BadPrefixText(_("Name the prefix: a tuple, hexadecimal digits or bytes."))
    if len(text) > MAX_TYPED:
        raise BadPrefixText(_("This is longer than any prefix."))
    if text.startswith("("):
        return _tuple(text)
    if re.match(r"[bB]['\"]", text):
        value = _literal(text)
        if not isinstance(value, bytes):
            raise BadPrefixText(_("This is not one bytes literal."))
        return value
    if text[:2] in ("0x", "0X"):
        digits = text[2:].replace(" ", "")
        if not re.fullmatch(r"(?:[0-9a-fA-F]{2})+", digits):
            raise BadPrefixText(_("After 0x, write pairs of hexadecimal digits and nothing else."))
        return bytes.fromhex(digits)
    if not _ESCAPED.fullmatch(text):
        raise BadPrefixText(
            _(r"Bytes are printable ASCII and \xNN; a backslash itself is \\. A tuple is in parentheses.")
        )
    return b"".join(
        bytes([int(code, 16)]) if code else (slash or char).encode() for code, slash, char in _PIECE.findall(text)
    )


def escaped(prefix: bytes) -> str:
    r"""Write bytes as fdbcli does: \x02legacy\x00."""
    return "".join(
        "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in prefix
    )


def as_tuple(prefix: bytes) -> str:
    """Write the tuple that a prefix packs; empty when it packs none."""
    elements = unpack_tuple(prefix)
    return write.visible(describe_element(elements)) if elements else ""


def prefix_text(prefix: bytes | None) -> str:
    """Write a prefix in the form that reads best: as a tuple where it is one, else as escaped bytes."""
    return "" if prefix is None else as_tuple(prefix) or escaped(prefix)


def _tuple(text: str) -> tuple[Any, ...]:
    value = _literal(text)
    if not isinstance(value, tuple):
        raise BadPrefixText(_("This is one element in parentheses, no tuple: a tuple of one ends with a comma."))
    return value


def _literal(text: str) -> Any:
    try:
        return _value(ast.parse(text, mode="eval").body)
    except BadPrefixText:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadPrefixText(
            _("This is not understood. A tuple is written as (\"legacy\", 7, b'\\x00', None, True, (1, 2)).")
        ) from None


def _value(node: ast.expr) -> Any:
    """Return what a piece of notation stands for: only what the tuple layer packs, and nothing is ever run."""
    match node:
        case ast.Tuple(elts=elements):
            return tuple(_value(element) for element in elements)
        case ast.Constant(value=str() | bytes() | int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if not isinstance(
            value, bool
        ):
            return -value
        case ast.Call(func=ast.Name(id="UUID"), args=[ast.Constant(value=str() as value)], keywords=[]):
            return UUID(value)
    raise BadPrefixText(_("A prefix holds text, bytes, numbers, None, True, False, UUID('…') and tuples of these."))
