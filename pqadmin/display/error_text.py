"""Errors as pages show them: redacted by the rules for values, every hidden character made visible."""

from pqadmin.display import format as write
from pqadmin.display.redaction import MARK, Redaction, covered

#: Python writes dictionaries with the other quotes: such a text is looked through as JSON too.
_SWAPPED = str.maketrans("\"'", "'\"")


def error_text(text: str, rules: Redaction) -> str:
    """Return an error on one line."""
    return write.one_line(redacted(text, rules))


def redacted(text: str, rules: Redaction) -> str:
    """Return an error or a traceback with marks for what rules hide, in JSON and in Python's notation."""
    if not rules:
        return text
    found = [
        span
        for quoted in (text, text.translate(_SWAPPED))
        for span in rules.spans(quoted.encode("utf-8", "replace"), anywhere=True)
    ]
    spans: list[tuple[int, int]] = []
    for begin, end in sorted(found):
        if spans and begin <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        elif begin < end:
            spans.append((begin, end))
    return covered(text.encode("utf-8", "replace"), spans, MARK.encode()).decode("utf-8", "replace")
