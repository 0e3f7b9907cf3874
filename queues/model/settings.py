"""Settings of a queue: what operators choose, and the validation of each.

They are part of the config, which every transaction reads, so each is bounded. Edges of priority bands are no setting:
the counters of bands cannot be rebuilt while items are pushed and popped. They are chosen when a queue is created.
"""

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict
from urllib.parse import urlsplit

from queues.errors import BadSetting, BadTime, NotForAttached, Words
from queues.model.config import Config, check_attempts
from queues.model.duration import KEEP, Duration, seconds_of
from queues.model.limits import LIMIT_NAMES, LONGEST, TARGET, check_limit
from queues.model.records import MAX_VALUE_SIZE

MAX_NOTE = 1_000
MAX_RUNBOOK = 500
#: Number of redaction rules, and characters of one.
MAX_RULES, MAX_RULE = 32, 64
#: Number of preview fields, and characters of one.
MAX_FIELDS, MAX_FIELD = 5, 100
#: More items than any store holds: a larger limit is a mistake.
MAX_DEPTH = 10**12


class Settings(TypedDict, total=False):
    """Arguments of `configure`."""

    #: What operators should know about the queue; plain text, at most 1,000 characters.
    note: str
    #: Address of instructions for incidents: http or https, or empty.
    runbook: str
    #: Keys to redact on pages: at most 32 names or globs (* and ?), case-insensitive.
    redact: Sequence[str]
    #: Fields of values that the list of queues shows: at most 5 paths such as customer.id or lines.0.sku.
    preview: Sequence[str]
    #: Number of attempts after which an item is dead; None: never.
    max_attempts: int | None
    #: Pushing is refused.
    closed: bool
    #: The most items, ready and delayed, that pushes may bring; None: no limit.
    max_depth: int | None
    #: Size in bytes of the largest value that may be pushed; None: the limit of all queues.
    max_value: int | None
    #: For how long records of acknowledged and popped items are kept, at most 366 days; None or 0: not at all.
    keep_finished: Duration | None
    #: Targets of the queue itself: items or seconds; 0: off, None: inherited from patterns and defaults.
    target_depth: int | None
    target_oldest: float | None
    target_wait: float | None
    target_dead: int | None
    target_no_consumer: float | None
    target_growing: float | None


NAMES: tuple[str, ...] = tuple(Settings.__annotations__)
#: The settings that are targets.
TARGETS = tuple(TARGET + limit for limit in LIMIT_NAMES)
#: Settings that other programs would ignore in an attached queue, and targets: its traffic is unknown.
_OWN = frozenset({"max_attempts", "closed", "max_depth", "max_value", "keep_finished", *TARGETS})
_WHY = Words("other programs write its items and would ignore this setting.")


def settings_of(config: Config) -> dict[str, Any]:
    """Return every setting of a queue by name."""
    return {name: getattr(config, name) for name in NAMES}


def check_settings(config: Config, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return valid changes in stored form; raise `BadSetting`, `NotForAttached`."""
    unknown = [name for name in changes if name not in NAMES]
    if unknown:
        raise BadSetting(
            "A queue has no setting {name}; it has {names}.", name=f"{unknown[0]!r:.60}", names=", ".join(NAMES)
        )
    checked = {name: _CHECKS[name](value) for name, value in changes.items()}
    if config.attached and any(value != getattr(config, name) for name, value in checked.items() if name in _OWN):
        raise NotForAttached(config.name, _WHY)
    return checked


def check_together(config: Config) -> Config:
    """Return a config without contradictions among its settings; raise `BadSetting`."""
    depth, most = config.target_depth, config.max_depth
    if depth and most is not None and depth > most:
        raise BadSetting(
            "Pushes are refused beyond {most:,} items: a target of {depth:,} is never reached.",
            "target_depth",
            most=most,
            depth=depth,
        )
    return config


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as plain JSON values."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


def _note(value: object) -> str:
    text = _text(value, Words("A note")).replace("\r\n", "\n").strip()
    if len(text) > MAX_NOTE:
        raise BadSetting(
            "A note has at most {most:,} characters; this one has {size:,}.", "note", most=MAX_NOTE, size=len(text)
        )
    hidden = next((c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t"), None)
    if hidden is not None:
        raise BadSetting("A note is plain text: it cannot hold U+{code:04X}.", "note", code=ord(hidden))
    return text


def _runbook(value: object) -> str:
    text = _text(value, Words("A runbook link")).strip()
    if not text:
        return ""
    if len(text) > MAX_RUNBOOK:
        raise BadSetting(
            "A runbook link has at most {most} characters; this one has {size:,}.",
            "runbook",
            most=MAX_RUNBOOK,
            size=len(text),
        )
    try:
        parts = urlsplit(text)
        host = parts.hostname
        _ = parts.port  # a port that is none raises here
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host:
        raise BadSetting("A runbook link begins with http:// or https:// and names a host.", "runbook")
    if "@" in parts.netloc:
        raise BadSetting("A runbook link cannot hold a user or a password: all viewers see it.", "runbook")
    if not text.isprintable() or any(c in ' \\"<>`' for c in text):
        raise BadSetting("A runbook link cannot hold spaces, backslashes, quotes or characters not seen.", "runbook")
    return text


def _redact(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise BadSetting("Redaction rules are a list of key names.", "redact")
    rules: dict[str, str] = {}
    for each in value:
        rule = unicodedata.normalize("NFC", _text(each, Words("A redaction rule")).strip())
        if not rule:
            continue
        if len(rule) > MAX_RULE:
            raise BadSetting(
                "A redaction rule has at most {most} characters; one has {size:,}.",
                "redact",
                most=MAX_RULE,
                size=len(rule),
            )
        if not rule.isprintable():
            raise BadSetting("A redaction rule cannot hold characters that cannot be seen.", "redact")
        rules.setdefault(rule.casefold(), rule)
    if len(rules) > MAX_RULES:
        raise BadSetting(
            "A queue has at most {most} redaction rules; these are {count:,}.",
            "redact",
            most=MAX_RULES,
            count=len(rules),
        )
    return tuple(rules.values())


def _preview(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise BadSetting("Preview fields are a list of paths.", "preview")
    texts = [_text(each, Words("A preview field")).strip() for each in value]
    paths = tuple(dict.fromkeys(path for path in texts if path))
    for path in paths:
        if len(path) > MAX_FIELD:
            raise BadSetting(
                "A preview field has at most {most} characters; one has {size:,}.",
                "preview",
                most=MAX_FIELD,
                size=len(path),
            )
        if not path.isprintable() or not all(path.split(".")):
            raise BadSetting("A preview field is a path of keys with dots between them: customer.id.", "preview")
    if len(paths) > MAX_FIELDS:
        raise BadSetting(
            "A queue has at most {most} preview fields; these are {count:,}.",
            "preview",
            most=MAX_FIELDS,
            count=len(paths),
        )
    return paths


def _closed(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadSetting("Pushing is closed or not: True or False.", "closed")
    return value


def _whole(name: str, most: int, rule: Words) -> Callable[[object], int | None]:
    def check(value: object) -> int | None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most):
            raise BadSetting("{rule}, not {value}.", name, rule=rule, value=f"{value!r:.40}")
        return value

    return check


def _keep_finished(value: object) -> float | None:
    try:
        seconds = 0.0 if value is None else float(seconds_of(value, KEEP))
    except BadTime:
        seconds = math.inf
    if seconds and not 1 <= seconds <= LONGEST:
        raise BadSetting(
            "Finished items are kept for 1 to {most:,} seconds, or not at all.",
            "keep_finished",
            most=int(LONGEST),
        )
    return seconds or None


def _text(value: object, what: Words) -> str:
    if not isinstance(value, str):
        raise BadSetting("{what} is text, not {type}.", what=what, type=type(value).__name__)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadSetting("{what} holds half a character, which is no text.", what=what) from None
    return value


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "note": _note,
    "runbook": _runbook,
    "redact": _redact,
    "preview": _preview,
    "max_attempts": check_attempts,
    "closed": _closed,
    "max_depth": _whole("max_depth", MAX_DEPTH, Words("A limit of items is 1 to {most:,}, or none", most=MAX_DEPTH)),
    "max_value": _whole(
        "max_value",
        MAX_VALUE_SIZE,
        Words("A limit of a value's size is 1 to {most:,} bytes, or none", most=MAX_VALUE_SIZE),
    ),
    "keep_finished": _keep_finished,
    **{TARGET + limit: partial(check_limit, limit) for limit in LIMIT_NAMES},
}
