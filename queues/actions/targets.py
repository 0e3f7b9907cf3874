"""Actions on the targets of queues by pattern."""

from collections.abc import Mapping
from typing import Unpack

from queues.actions.audited_action import Action, action
from queues.errors import BadGlob, PatternNotFound, SettingsChanged
from queues.model.limits import UNSET, LimitArguments, Limits, check_limits
from queues.model.name_patterns import check_glob
from queues.operations.targets import StoredTargets


@action
def set_targets(
    action: Action,
    pattern: str,
    *,
    expect: Mapping[str, float] | None = None,
    reason: str = "",
    **limits: Unpack[LimitArguments],
) -> str:
    """Set the limits of a pattern, and return it in its one spelling. A limit that is not named is inherited.

    `expect` are its limits as they were shown, none for a new pattern: if they differ now, `BadGlob` says that the
    pattern is there already, `SettingsChanged` that it was changed. Raises `BadName`, `BadSetting`.
    """
    glob, targets = check_glob(pattern), StoredTargets(action.context)
    before = targets.patterns(tr=action.tr).get(glob)
    _compare(glob, before, expect)
    targets.set(glob, tr=action.tr, **limits)
    after = check_limits(limits)
    if after != before:
        was = None if before is None else before.given
        action.record(None, "set_targets", count=0, reason=reason, before=was, after={"pattern": glob, **after.given})
    return glob


@action
def remove_targets(
    action: Action, pattern: str, *, expect: Mapping[str, float] | None = None, reason: str = ""
) -> None:
    """Remove a pattern with its limits; raise `BadGlob`, `BadName`, `PatternNotFound`, `SettingsChanged`."""
    glob, targets = check_glob(pattern), StoredTargets(action.context)
    before = targets.patterns(tr=action.tr).get(glob)
    if before is not None:  # one that cannot be read is only removed
        _compare(glob, before, expect)
    targets.remove(glob, tr=action.tr)
    was = {"pattern": glob, **(UNSET if before is None else before).given}
    action.record(None, "remove_targets", count=0, reason=reason, before=was)


@action
def set_default_targets(action: Action, **limits: Unpack[LimitArguments]) -> None:
    """Set the defaults of the store; those that are there already are left alone. Raises `BadSetting`."""
    before = StoredTargets(action.context).set_defaults(tr=action.tr, **limits)
    if before is not None:
        action.record(None, "set_targets", count=0, before=before.given, after=check_limits(limits).given)


def _compare(glob: str, now: Limits | None, expect: Mapping[str, float] | None) -> None:
    if expect is None or dict(expect) == (now or UNSET).given:
        return
    if not expect:
        raise BadGlob("There are targets for {glob} already: change those.", glob=glob)
    if now is None:
        raise PatternNotFound("There are no targets for {glob} any more.", glob=glob)
    given = now.given
    changed = {name: (expect.get(name), given.get(name)) for name in {*expect, *given}}
    changed = {name: (was, value) for name, (was, value) in changed.items() if was != value}
    raise SettingsChanged("The targets for {glob} were changed since you saw them.", changed, glob=glob)
