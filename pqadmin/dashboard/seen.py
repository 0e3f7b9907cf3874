"""What a searcher sees of values: what is hidden on pages is not found by searching either."""

from __future__ import annotations

from collections.abc import Callable

from pqadmin.dashboard.redaction import MARK, covered, rules_of
from queues.config import Config


def what_searchers_see(config: Config) -> Callable[[bytes], bytes] | None:
    """Return what hides parts of a queue's values; None where nothing is hidden."""
    rules = rules_of(config.redact)
    if not rules:
        return None
    return lambda value: covered(value, rules.spans(value), MARK.encode())
