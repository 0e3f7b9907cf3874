"""Where each limit of a queue comes from, against a plain reference; and what limits there are."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.errors import BadSetting
from queues.health import DEFAULTS, Origin, Target, TargetRules, resolve
from queues.model.limits import LIMIT_NAMES, UNSET, Limits, check_limits

NUMBERS = st.none() | st.sampled_from([0, 120, 600, 7_200])
LIMITS = st.builds(Limits, **dict.fromkeys(LIMIT_NAMES, NUMBERS))
PATTERNS = st.dictionaries(st.text("ab*?", min_size=1, max_size=5), LIMITS, max_size=6)


def plainly(name: str, limit: str, own: Limits, patterns: dict[str, Limits], defaults: Limits) -> Target:
    """Say where a limit comes from, word for word as the documents do."""
    if getattr(own, limit) is not None:
        return Target(getattr(own, limit), Origin.QUEUE)
    setting = []
    for glob, limits in patterns.items():
        plain = "".join({"*": ".*", "?": "."}.get(letter, letter) for letter in glob)
        if re.fullmatch(plain, name) and getattr(limits, limit) is not None:
            setting.append(glob)
    if setting:
        most = max(len(re.sub("[*?]", "", glob)) for glob in setting)
        chosen = min(glob for glob in setting if len(re.sub("[*?]", "", glob)) == most)
        return Target(getattr(patterns[chosen], limit), Origin.PATTERN, chosen)
    default = getattr(defaults, limit)
    return Target(getattr(DEFAULTS, limit) if default is None else default, Origin.DEFAULT)


@given(st.text("abc", min_size=1, max_size=5), LIMITS, PATTERNS, LIMITS)
def test_each_limit_comes_from_the_first_place_that_sets_it(
    name: str, own: Limits, patterns: dict[str, Limits], defaults: Limits
) -> None:
    found = resolve(name, own, patterns.items(), defaults)
    assert found == {limit: plainly(name, limit, own, patterns, defaults) for limit in LIMIT_NAMES}
    assert found == resolve(name, own, reversed(list(patterns.items())), defaults)
    targets = TargetRules(patterns, defaults).targets(name, own)
    assert {limit: getattr(targets, limit) for limit in LIMIT_NAMES} == {
        limit: target.limit for limit, target in found.items()
    }


def test_off_is_a_limit_and_absent_is_none() -> None:
    rules = TargetRules({"orders:*": Limits(oldest=60, dead=5), "orders:eu:*": Limits(oldest=0)})
    eu = rules.resolve("orders:eu:new")
    assert eu["oldest"] == Target(0, Origin.PATTERN, "orders:eu:*")
    assert eu["dead"] == Target(5, Origin.PATTERN, "orders:*")
    assert rules.resolve("orders:us", Limits(dead=0))["dead"] == Target(0, Origin.QUEUE)
    assert rules.targets("mail", UNSET) == DEFAULTS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("depth", -1),
        ("depth", 1.5),
        ("depth", True),
        ("depth", 10**13),
        ("dead", "many"),
        ("oldest", -1),
        ("oldest", float("nan")),
        ("oldest", float("inf")),
        ("oldest", 10**400),
        ("wait", "15 min"),
        ("wait", False),
        ("no_consumer", 0.5),
        ("growing", 60),
        ("speed", 1),
    ],
)
def test_a_limit_that_means_nothing_is_refused(name: str, value: Any) -> None:
    with pytest.raises(BadSetting) as refused:
        check_limits({name: value})
    assert refused.value.name in ("target_" + name, "")
