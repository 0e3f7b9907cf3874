"""What a searcher sees of values: what is hidden on pages is not found by searching either."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pqadmin.display.redaction import rules_of
from pqadmin.display.values import masked
from queues.admin import Config


def what_searchers_see(config: Config) -> Callable[[bytes], bytes] | None:
    """Return what hides parts of a queue's values; None where nothing is hidden."""
    rules = rules_of(config.redact)
    return partial(masked, rules=rules) if rules else None
