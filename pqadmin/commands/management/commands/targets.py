"""`pqadmin targets`: show and set the targets of a queue, of a pattern of names, or of all."""

from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from pqadmin.commands.arguments import REASON, Argument, flag
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.display.durations import BadDuration, duration, parse_duration
from pqadmin.display.format import number, share, visible
from pqadmin.files.shapes import targets_shape
from queues import Store
from queues.admin import (
    LIMIT_NAMES,
    Limits,
    TargetRules,
    check_glob,
)

#: Typed for a limit that is not set there any more.
_INHERIT = "inherit"
#: Limits that are numbers of items.
_ITEMS = ("depth", "dead")


def _limit(text: str) -> float | None:
    """Read a time; off is 0, inherit is None."""
    if text in ("off", _INHERIT):
        return 0.0 if text == "off" else None
    try:
        return parse_duration(text)
    except BadDuration as error:
        raise ArgumentTypeError(f"{text!r}: {error} Or off, or inherit.") from None


def _items(text: str) -> int | None:
    """Read a number of items; off is 0, inherit is None."""
    if text in ("off", _INHERIT):
        return 0 if text == "off" else None
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise ArgumentTypeError(f"{text!r} is not a whole number, off or inherit")
    return int(text)


class Command(StoreCommand):
    """Show or set targets: beyond them a queue needs attention.

    Without a name, list the defaults and all patterns. With the name of a queue, show or set its targets; with a
    pattern, in which * stands for any characters and ? for one, those of all queues with matching names. A limit that
    is not set is inherited: from the most specific pattern, else from the defaults.
    """

    arguments = (
        Argument("name", nargs="?", help="a queue, or a pattern such as 'orders:*'"),
        Argument("--depth", type=_items, default=..., metavar="N", help="ready items; off, or inherit"),
        Argument("--oldest", type=_limit, default=..., metavar="TIME", help="oldest age, such as 15min"),
        Argument("--wait", type=_limit, default=..., metavar="TIME", help="wait of 95 of 100 taken items"),
        Argument("--dead", type=_items, default=..., metavar="N", help="dead items"),
        Argument("--no-consumer", type=_limit, default=..., metavar="TIME", help="time in which none is taken"),
        Argument("--growing", type=_limit, default=..., metavar="TIME", help="time of growth, 2min or more"),
        flag("--pattern", "the name is a pattern, though nothing in it is a wildcard"),
        flag("--remove", "remove all targets of the pattern, or of the queue itself"),
        REASON,
    )

    def run(self, store: Store, options: Options) -> None:
        """Change what is asked for, then show it."""
        changes = {limit: options[limit] for limit in LIMIT_NAMES if options[limit] is not ...}
        name = options["name"]
        if name is None:
            if changes or options["remove"] or options["pattern"]:
                raise CommandError("Name the queue or the pattern.")
            self._list(store.targets.rules())
        elif changes and options["remove"]:
            raise CommandError("--remove takes no limits.")
        elif options["pattern"] or "*" in name or "?" in name:
            self._pattern(store, name, changes, options)
        else:
            self._queue(store, name, changes, options)

    def _list(self, rules: TargetRules) -> None:
        defaults = {limit: target.limit for limit, target in TargetRules(defaults=rules.defaults).resolve("").items()}
        shape: dict[str, Any] = {
            "defaults": defaults,
            "patterns": [{"pattern": glob, "targets": limits.given} for glob, limits in rules.patterns.items()],
            "unreadable": [glob for glob, _ in rules.unreadable],
        }
        self.answer(
            shape,
            f"defaults: {_words(defaults)}",
            *(f"{glob}: {_words(limits.given)}" for glob, limits in rules.patterns.items()),
            *(f"{visible(glob) or 'defaults'}: cannot be read: {why}" for glob, why in rules.unreadable),
        )

    def _pattern(self, store: Store, name: str, changes: Mapping[str, Any], options: Options) -> None:
        actions, reason, name = self.actions(store), options["reason"], check_glob(name)
        if options["remove"]:
            actions.remove_targets(name, reason=reason)
            self.answer({"pattern": name, "targets": {}}, f"{visible(name)}: removed")
            return
        before = store.targets.patterns().get(name)
        if changes:
            limits = {**({} if before is None else before.given), **changes}
            expect = {} if before is None else before.given
            name = actions.set_targets(name, expect=expect, reason=reason, **_given(limits))
        now = store.targets.patterns().get(name, Limits()).given
        self.answer({"pattern": name, "targets": now}, f"{visible(name)}: {_words(now) or 'no targets'}")

    def _queue(self, store: Store, name: str, changes: Mapping[str, Any], options: Options) -> None:
        if options["remove"]:
            changes = dict.fromkeys(LIMIT_NAMES)
        if changes:
            settings: Any = {f"target_{limit}": value for limit, value in changes.items()}
            self.actions(store).configure(name, reason=options["reason"], **settings)
        shape = _shape(store, name)
        self.answer(
            shape,
            *(
                f"{limit}: {_one(limit, one['limit'])} ({_origin(one)}){_day(one)}"
                for limit, one in shape["targets"].items()
            ),
        )


def _shape(store: Store, name: str) -> dict[str, Any]:
    """Return the limits of a queue as JSON."""
    if store.site is not None:
        return dict(store.site.targets(name))
    with store.suggesting():
        status, rules = store.read(lambda tr: (store.queue(name, tr=tr).status(tr=tr), store.targets.rules(tr=tr)))
    return targets_shape(status, rules, store.now())


def _given(limits: Mapping[str, Any]) -> Any:
    return {limit: value for limit, value in limits.items() if value is not None}


def _one(limit: str, value: float) -> str:
    if not value:
        return "off"
    return number(int(value)) if limit in _ITEMS else duration(value)


def _day(target: Mapping[str, Any]) -> str:
    """Say how much of the last day a queue was beyond a target."""
    beyond, unknown = target["last_24_h"]["in_breach"], target["last_24_h"]["unknown"]
    if not target["limit"] and not beyond:
        return ""
    if unknown == 1:
        return "; in breach in the last 24 h: unknown"
    untold = f", {share(unknown)} unknown" if unknown else ""
    return f"; in breach {share(beyond)} of the last 24 h{untold}"


def _words(limits: Mapping[str, float]) -> str:
    return ", ".join(f"{limit} {_one(limit, value)}" for limit, value in limits.items())


def _origin(target: Mapping[str, Any]) -> str:
    return f"pattern {visible(target['pattern'])}" if target["pattern"] else str(target["from"])
