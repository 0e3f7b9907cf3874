"""`pqadmin configure`: show or change a queue's settings."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandParser

from pqadmin.commands.store_command import StoreCommand, whole_number
from queues import Store
from queues.model.settings import Settings, plain, settings_of


class Command(StoreCommand):
    """Change settings of a queue, audited; without changes, show them."""

    help = "Change settings of a queue; without changes, show them."

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("queue")
        parser.add_argument("--note", metavar="TEXT", help="what operators should know; '' for none")
        parser.add_argument("--runbook", metavar="URL", help="where it says what to do; '' for none")
        parser.add_argument(
            "--redact", nargs="*", metavar="KEY", help="keys whose values nobody sees unasked: card*, iban; none: none"
        )
        parser.add_argument("--max-attempts", type=_limit, metavar="N", help="dead after so many attempts; none: never")
        parser.add_argument("--max-depth", type=_limit, metavar="N", help="items ready and delayed, or none")
        parser.add_argument("--max-value", type=_limit, metavar="BYTES", help="of one value, or none")
        door = parser.add_mutually_exclusive_group()
        door.add_argument("--close", action="store_true", help="refuse pushes")
        door.add_argument("--open", action="store_true", help="let pushes in again")
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Change the settings, then show all."""
        queue = store.queue(options["queue"])
        changes: Settings = {}
        for name in ("note", "runbook"):
            if options[name] is not None:
                changes[name] = options[name]
        if options["redact"] is not None:
            changes["redact"] = tuple(options["redact"])
        for name in ("max_attempts", "max_depth", "max_value"):
            if options[name] is not None:
                changes[name] = options[name] or None  # type: ignore[literal-required]
        if options["close"] or options["open"]:
            changes["closed"] = options["close"]
        if changes:
            queue = self.acts(store).configure(queue.name, reason=options["reason"], **changes)
        settings = plain(settings_of(queue.config))
        if options["json"]:
            self.print_json({"queue": queue.name, "settings": dict(settings)})
            return
        for name, value in settings.items():
            self.stdout.write(f"{name}: {_words(value)}")


def _limit(text: str) -> int:
    """Read a limit; 0 stands for none."""
    if text == "none":
        return 0
    try:
        return whole_number(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}, nor none") from None


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return {None: "none", True: "yes", False: "no", "": "none"}.get(value, str(value))
