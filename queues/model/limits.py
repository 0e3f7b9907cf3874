"""Limits of targets. Each is a number set in one place, or inherited (None); 0 switches it off."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

from msgspec import Struct
from msgspec.structs import asdict

from queues.errors import BadSetting, Words

#: Beginning of the names of limits among the settings of a queue.
TARGET = "target_"
#: The longest time of a target, in seconds: a year; and the most items.
LONGEST, MOST = 366 * 86_400.0, 10**12
#: Seconds of the shortest time, and of those by which the absence of a consumer and growth can be told.
_SHORTEST, _ABSENT, GROWS = 0.001, 1.0, 120.0


class Limits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits as set in one place: by a queue, by a pattern, or as defaults. None: inherited; 0: off."""

    #: Ready items.
    depth: int | None = None
    #: Seconds that the oldest claimable item may wait.
    oldest: float | None = None
    #: Seconds that 95 of 100 taken items may have waited.
    wait: float | None = None
    #: Dead items.
    dead: int | None = None
    #: Seconds for which items may be claimable without a consumer that takes.
    no_consumer: float | None = None
    #: Seconds for which a queue may grow.
    growing: float | None = None

    @property
    def given(self) -> dict[str, float]:
        """The limits that are set here, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class LimitArguments(TypedDict, total=False):
    """Limits as keyword arguments."""

    depth: int | None
    oldest: float | None
    wait: float | None
    dead: int | None
    no_consumer: float | None
    growing: float | None


#: Nothing is set.
UNSET = Limits()
LIMIT_NAMES: tuple[str, ...] = Limits.__struct_fields__


class _Seconds(NamedTuple):
    """The rule of a limit that is a time."""

    least: float
    why: Words


_ANY = Words("A time of a target is {least} to {most:,} seconds, or 0 for off", least=_SHORTEST, most=int(LONGEST))
_SECONDS = {
    "oldest": _Seconds(_SHORTEST, _ANY),
    "wait": _Seconds(_SHORTEST, _ANY),
    "no_consumer": _Seconds(
        _ABSENT, Words("A time without a consumer is 1 to {most:,} seconds, or 0 for off", most=int(LONGEST))
    ),
    "growing": _Seconds(
        GROWS,
        Words(
            "Growth can be told after two minutes: its target is 120 to {most:,} seconds, or 0 for off",
            most=int(LONGEST),
        ),
    ),
}
_ITEMS = Words("A target of items is a whole number up to {most:,}, or 0 for off", most=MOST)


def check_limits(limits: Mapping[str, Any]) -> Limits:
    """Return valid limits; raise `BadSetting`."""
    unknown = [name for name in limits if name not in LIMIT_NAMES]
    if unknown:
        raise BadSetting(
            "There is no target {name}; there are {names}.", name=f"{unknown[0]!r:.60}", names=", ".join(LIMIT_NAMES)
        )
    return Limits(**{name: check_limit(name, value) for name, value in limits.items()})


def check_limit(name: str, value: object) -> Any:
    """Return the valid value of one limit; raise `BadSetting`."""
    rule = _SECONDS.get(name)
    if value is None:
        return None
    if rule is None:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
            raise _bad(name, _ITEMS, value)
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or (value and not rule.least <= value <= LONGEST):
        raise _bad(name, rule.why, value)
    return float(value)


def _bad(name: str, rule: Words, value: object) -> BadSetting:
    setting = TARGET + name
    return BadSetting("{rule}, not {value}.", setting, rule=rule, value=f"{value!r:.40}")
