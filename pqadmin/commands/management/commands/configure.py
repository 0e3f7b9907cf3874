"""`pqadmin configure`: show or change a queue's settings."""

from argparse import ArgumentTypeError
from typing import Any

from pqadmin.commands.arguments import QUEUE, REASON, Argument, OneOf, flag, seconds, whole_number
from pqadmin.commands.store_command import Options, StoreCommand
from queues import Store
from queues.admin import plain_settings, settings_of


def _limit(text: str) -> int:
    """Read a limit; 0 means none."""
    if text == "none":
        return 0
    try:
        return whole_number(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}, nor none") from None


def _span(text: str) -> float:
    """Read a span; 0 means none."""
    return 0.0 if text == "none" else seconds(text)


class Command(StoreCommand):
    """Change settings of a queue; without changes, show them."""

    arguments = (
        QUEUE,
        Argument("--note", metavar="TEXT", help="what operators should know; '' for none"),
        Argument("--runbook", metavar="URL", help="the page that says what to do; '' for none"),
        Argument("--redact", nargs="*", metavar="KEY", help="keys with hidden values: card*, iban; none: none"),
        Argument("--preview", nargs="*", metavar="PATH", help="fields in lists of queues: customer.id; none: none"),
        Argument("--max-attempts", type=_limit, metavar="N", help="dead after so many attempts; none: never"),
        Argument("--max-depth", type=_limit, metavar="N", help="items ready and delayed, or none"),
        Argument("--max-value", type=_limit, metavar="BYTES", help="of one value, or none"),
        Argument("--keep-finished", type=_span, metavar="SPAN", help="of acknowledged and popped items: 7d; none: not"),
        OneOf(flag("--close", "refuse pushes"), flag("--open", "accept pushes again")),
        REASON,
    )

    def run(self, store: Store, options: Options) -> None:
        """Change the settings, then show all."""
        queue = store.queue(options["queue"])
        changes: dict[str, Any] = {}
        for name in ("note", "runbook"):
            if options[name] is not None:
                changes[name] = options[name]
        for name in ("redact", "preview"):
            if options[name] is not None:
                changes[name] = () if options[name] == ["none"] else tuple(options[name])
        for name in ("max_attempts", "max_depth", "max_value"):
            if options[name] is not None:
                changes[name] = options[name] or None
        if options["keep_finished"] is not None:
            changes["keep_finished"] = options["keep_finished"]
        if options["close"] or options["open"]:
            changes["closed"] = options["close"]
        if changes:
            queue = self.actions(store).configure(queue.name, reason=options["reason"], **changes)
        settings = plain_settings(settings_of(queue.config))
        self.answer(
            {"queue": queue.name, "settings": dict(settings)},
            *(f"{name}: {_words(value)}" for name, value in settings.items()),
        )


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return {None: "none", True: "yes", False: "no", "": "none"}.get(value, str(value))
