"""Groups of errors: one text for all errors that differ in nothing but ids, numbers and values."""

import re

#: Characters of a group's text.
MAX_GROUP = 200
#: Characters of an error that are looked at: a reason has at most 500.
_LOOK = 500
_GAP = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
#: The value behind a quoted key, as JSON and Python write it, its quotes perhaps escaped: rules of redaction hide such
#: values. What is not one plain string, number or constant ends nowhere that can be told: it is all of the rest.
_VALUE = re.compile(
    r"""((\\*["'])(?:(?!\2)(?:[^\\]|\\.))*+\2\s*+:\s*+)"""
    r"""(?:(?:(\\*["'])(?:(?!\3)[^\\])*+\3|-?[0-9][0-9.eE+-]*+|true|false|null|True|False|None)"""
    r"""(?=\s*+(?:[,}\]]|\Z))|.*+)""",
    re.DOTALL,
)
#: UUIDs, hexadecimal numbers, runs of hexadecimal digits with a digit among them, numbers.
_NUMBER = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b"
    r"|[0-9]+(?:[.,_:-][0-9]+)*",
    re.IGNORECASE,
)


def without_values(error: str) -> str:
    """Return an error without the values behind quoted keys, which rules of redaction may hide."""
    return _VALUE.sub(r"\1…", error[:_LOOK])


def error_group(error: str) -> str:
    """Return the group of an error: its text with ids, numbers and values masked, on one line."""
    text = _NUMBER.sub("#", without_values(error))
    return _GAP.sub(" ", text).strip()[:MAX_GROUP]
