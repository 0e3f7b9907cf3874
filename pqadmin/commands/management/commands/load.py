"""`pqadmin load`: traffic for demonstrations and measurements."""

from __future__ import annotations

import threading
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from rich.live import Live
from rich.text import Text

from pqadmin.commands.interruption import Interrupted, Interruption
from pqadmin.commands.store_command import StoreCommand, whole_number
from pqadmin.commands.tables import console
from pqadmin.display.format import number, rate
from pqadmin.load.pace import Burst, Pace
from pqadmin.load.plan import plans
from pqadmin.load.run import LoadRun, ProcessFailed, Tally, create_queues
from queues import Store

#: Seconds between two states of the line on a terminal, and between two lines elsewhere.
_TERMINAL_TICK = 0.5
_PIPE_TICK = 5.0


class Command(StoreCommand):
    """Push to and take from realistic queues at set rates until stopped."""

    help = (
        "Push to and take from the queues of a shop, to look at. It works at set rates, in processes of its own, "
        "until --seconds are over or Ctrl-C. Rates are of all processes and queues together. The queues stay; running"
        " it again goes on with them."
    )

    def add_own_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--queues", type=whole_number, default=24, metavar="N", help="default: %(default)s")
        parser.add_argument("--push-rate", type=_rate, default=100.0, metavar="R", help="a second (default: 100)")
        parser.add_argument("--pop-rate", type=_rate, default=100.0, metavar="R", help="a second (default: 100)")
        parser.add_argument("--producers", type=whole_number, default=1, metavar="N", help="processes that push")
        parser.add_argument("--workers", type=whole_number, default=1, metavar="N", help="processes that take")
        parser.add_argument("--seconds", type=_rate, metavar="S", help="default: until stopped")
        parser.add_argument("--prefix", default="demo:", help="of the queues' names (default: %(default)s)")
        parser.add_argument(
            "--burst",
            type=_burst,
            metavar="PERIOD:LENGTH:FACTOR",
            help="every PERIOD seconds push FACTOR times as fast for LENGTH seconds, as in 30:3:10",
        )
        parser.add_argument("--seed", type=int, default=0, metavar="N", help="other numbers, other traffic")

    def may_make_store(self, options: dict[str, Any]) -> bool:
        """Say whether a store that is not there is made."""
        return True

    def run(self, store: Store, options: dict[str, Any]) -> None:
        """Run the load and tell what it did."""
        url = self.store_url(options)
        if url.startswith("memory:"):
            raise CommandError("memory: is private to one process: load needs a store that others can open.")
        planned = plans(options["queues"], prefix=options["prefix"], seed=options["seed"])
        with Interruption() as interruption:
            create_queues(store, planned)
            load = LoadRun(url, planned, seed=options["seed"])
            failed: ProcessFailed | None = None
            try:
                load.start(
                    producers=options["producers"],
                    push_pace=Pace(rate=options["push_rate"], burst=options["burst"]),
                    workers=options["workers"],
                    pop_pace=Pace(rate=options["pop_rate"]),
                )
                self._watch(load, options)
            except Interrupted:
                pass  # the way to end a load
            except ProcessFailed as error:
                failed = error
            finally:
                interruption.finish(load.stop)
        self._tell_result(load.tally(), options)
        if failed is not None:
            raise CommandError(str(failed))

    def _watch(self, load: LoadRun, options: dict[str, Any]) -> None:
        pause = threading.Event()
        before = load.tally()
        with self._line() as (show, tick):
            while options["seconds"] is None or before.seconds < options["seconds"]:
                left = tick if options["seconds"] is None else min(tick, options["seconds"] - before.seconds)
                pause.wait(max(left, 0.001))
                now = load.tally()
                show(_status(before, now))
                before = now

    @contextmanager
    def _line(self) -> Iterator[tuple[Callable[[str], None], float]]:
        """Yield a function that shows a state, and the seconds between two."""
        if self.stderr.isatty():
            with Live(console=console(self.progress_stream()), auto_refresh=False, transient=True) as live:
                yield lambda text: live.update(Text(text), refresh=True), _TERMINAL_TICK
        else:
            yield self._write_line, _PIPE_TICK

    def _write_line(self, text: str) -> None:
        self.stderr.write(text, lambda same: same)
        self.stderr.flush()

    def _tell_result(self, tally: Tally, options: dict[str, Any]) -> None:
        if options["json"]:
            self.print_json({**asdict(tally), "seconds": round(tally.seconds, 3)})
            return
        told = f"Pushed {tally.pushed} and took {tally.taken} items in {tally.seconds:.1f} s"
        rest = [
            f"{count} {what}"
            for count, what in (
                (tally.empty, "takes found nothing"),
                (tally.refused, "were refused"),
                (tally.dropped, "came too late and were dropped"),
            )
            if count
        ]
        self.stdout.write("; ".join([told, *rest]) + ".")


def _status(before: Tally, now: Tally) -> str:
    seconds = max(now.seconds - before.seconds, 0.001)
    pushed, taken = (now.pushed - before.pushed) / seconds, (now.taken - before.taken) / seconds
    told = f"{rate(pushed)} pushed/s · {rate(taken)} taken/s · {number(now.pushed)} pushed · {number(now.taken)} taken"
    return told if not now.dropped else f"{told} · {number(now.dropped)} too late"


def _rate(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 <= found < 1e9:
        raise ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return found


def _burst(text: str) -> Burst:
    try:
        return Burst.parse(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not PERIOD:LENGTH:FACTOR with a length below the period") from None
