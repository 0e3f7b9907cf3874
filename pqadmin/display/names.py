"""Names of queues, split into group and rest for display."""

from __future__ import annotations

from queues.errors import display_name


def split(name: str) -> tuple[str, str]:
    """Split at the last colon that leaves something behind it."""
    shown = display_name(name)
    cut = shown.rstrip(":").rfind(":") + 1
    return shown[:cut], shown[cut:]
