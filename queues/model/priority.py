"""Priorities, normalized by the queue's declared type.

The tuple encoding orders by type before value (every int before every float, a bool is a type of its own,
−0.0 before 0.0), so one queue holds one type and each value has one spelling.
"""

import math
import operator
import unicodedata
from typing import Literal, cast, get_args

from queues.errors import BadPriority, BadQueueKind, Words

Priority = int | float | str
PriorityType = Literal["int", "float", "str"]
TYPES: tuple[str, ...] = get_args(PriorityType)

#: The tuple encoding ends at 255 bytes of magnitude.
_INT_BOUND = 1 << (255 * 8)
#: More decimal digits than the bound has: refused before conversion, which is quadratic.
_INT_DIGITS = 620
MAX_STR_BYTES = 200


def check_type(priority_type: str) -> PriorityType:
    """Return the type's name; raise `BadQueueKind` for one that does not exist."""
    if priority_type not in TYPES:
        raise BadQueueKind(
            "Priorities are of type int, float or str, not {priority_type}.", priority_type=repr(priority_type)
        )
    return cast(PriorityType, priority_type)


def normalize(priority: object, priority_type: PriorityType) -> Priority:
    """Return the priority as the queue keeps it; raise `BadPriority`."""
    if priority is None:
        raise BadPriority("A priority is needed: {noun}.", noun=_NOUN[priority_type])
    if isinstance(priority, bool):
        raise BadPriority("A priority of this queue is {noun}, not a bool.", noun=_NOUN[priority_type])
    if priority_type == "int":
        return _int(priority)
    if priority_type == "float":
        return _float(priority)
    return _str(priority)


_NOUN = {"int": Words("a whole number"), "float": Words("a number"), "str": Words("text")}


def _int(priority: object) -> int:
    if not isinstance(priority, int):
        raise BadPriority("A priority of this queue is a whole number, not {kind}.", kind=_kind(priority))
    if not -_INT_BOUND < priority < _INT_BOUND:
        raise BadPriority("The priority is too large: a whole number has at most 255 bytes (614 digits).")
    return operator.index(priority)  # of a subclass, such as an IntEnum, the plain number


def _float(priority: object) -> float:
    if isinstance(priority, int):
        try:
            exact = float(priority)
        except OverflowError:
            exact = math.inf
        if exact != priority:
            raise BadPriority("The priority is a whole number that no float holds exactly.")
        return exact + 0.0
    if not isinstance(priority, float):
        raise BadPriority("A priority of this queue is a number, not {kind}.", kind=_kind(priority))
    check_finite(priority)
    return priority + 0.0  # −0.0 + 0.0 is 0.0


def check_finite(priority: object) -> None:
    """Raise `BadPriority` for NaN and infinities, of which a record would keep nothing."""
    if isinstance(priority, float) and not math.isfinite(priority):
        raise BadPriority("A priority is a finite number: NaN and infinities have no place in an order.")


def _str(priority: object) -> str:
    if not isinstance(priority, str):
        raise BadPriority("A priority of this queue is text, not {kind}.", kind=_kind(priority))
    if len(priority) > MAX_STR_BYTES:
        raise BadPriority("A text priority has at most {most} bytes in UTF-8.", most=MAX_STR_BYTES)
    # Of a subclass the plain text: `str()` of an Enum is another one.
    text = unicodedata.normalize("NFC", str.__str__(priority))
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadPriority("The priority is not valid text: it has a lone surrogate.") from None
    if size > MAX_STR_BYTES:
        raise BadPriority(
            "A text priority has at most {most} bytes in UTF-8; this one has {size}.", most=MAX_STR_BYTES, size=size
        )
    return text


def _kind(priority: object) -> str:
    return _KINDS.get(type(priority), f"a {type(priority).__name__}")


_KINDS = {int: Words("an int"), float: Words("a float"), str: Words("text"), bytes: Words("bytes")}


def parse_priority(text: str, priority_type: PriorityType) -> Priority:
    """Parse a priority typed by a person; raise `BadPriority`."""
    if priority_type == "str":
        return _str(text)
    text = text.strip()
    if not text:
        raise BadPriority("A priority is needed.")
    if len(text) > _INT_DIGITS:
        raise BadPriority("The priority is too long: {size:,} characters.", size=len(text))
    if not text.isascii() or "_" in text:
        raise BadPriority("“{text}” is not {noun}.", text=_cut(text), noun=_NOUN[priority_type])
    try:
        return _int(int(text)) if priority_type == "int" else _float(_number(text))
    except ValueError as error:
        if isinstance(error, BadPriority):
            raise
        raise BadPriority("“{text}” is not {noun}.", text=_cut(text), noun=_NOUN[priority_type]) from None


def _number(text: str) -> int | float:
    """Parse digits as a whole number. One that no float holds exactly is refused, not rounded."""
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def _cut(text: str) -> str:
    shown = "".join(c if c.isprintable() else "�" for c in text)
    return shown if len(shown) <= 40 else shown[:39] + "…"
