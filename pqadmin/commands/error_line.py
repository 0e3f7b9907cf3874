"""An error of a command as one line: words, or JSON where that is asked for."""

from collections.abc import Iterable, Sequence

from pqadmin.files.plain_text import json_text


def asks_json(arguments: Sequence[str]) -> bool:
    """Return whether the arguments of a command ask for JSON."""
    return not {"--json", "--jsonl"}.isdisjoint(arguments)


def json_error(code: str, message: str, suggestions: Iterable[str] = ()) -> str:
    """Return an error as JSON: its code, its message, and names like the one asked for."""
    return json_text({"error": {"code": code, "message": message, "suggestions": list(suggestions)}})
