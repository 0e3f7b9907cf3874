"""`pqadmin load`: traffic for demonstrations and measurements."""

import threading
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError
from rich.live import Live
from rich.text import Text

from pqadmin.commands.arguments import Argument, number, whole_number
from pqadmin.commands.stop_signals import Interrupted, Interruption
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.commands.tables import console
from pqadmin.display import format as write
from pqadmin.load.pace import Burst, Pace
from pqadmin.load.plan import plans, with_trouble
from pqadmin.load.run import LoadRun, LoadStats, ProcessFailed, create_queues
from queues import Store

#: Seconds between two states of the line on a terminal, and between two looks at the processes elsewhere.
_TERMINAL_TICK, _PIPE_TICK = 0.5, 5.0

_rate = number(float, 0, 1e9, "a number of at least 0")


def _burst(text: str) -> Burst:
    try:
        return Burst.parse(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not PERIOD:LENGTH:FACTOR with a length below the period") from None


class Command(StoreCommand):
    """Push to and take from the queues of a shop, as a demonstration.

    It works at set rates, in processes of its own, until --seconds are over or Ctrl-C. Rates are of all processes and
    queues together. The queues stay; running it again continues with them.
    """

    on_servers = False
    arguments = (
        Argument("--queues", type=whole_number, default=24, metavar="N", help="default: %(default)s"),
        Argument("--push-rate", type=_rate, default=100.0, metavar="R", help="a second (default: 100)"),
        Argument("--pop-rate", type=_rate, default=100.0, metavar="R", help="a second (default: 100)"),
        Argument("--producers", type=whole_number, default=1, metavar="N", help="processes that push"),
        Argument("--workers", type=whole_number, default=1, metavar="N", help="processes that take"),
        Argument("--seconds", type=_rate, metavar="S", help="default: until stopped"),
        Argument("--prefix", default="demo:", help="of the queues' names (default: %(default)s)"),
        Argument(
            "--burst",
            type=_burst,
            metavar="PERIOD:LENGTH:FACTOR",
            help="every PERIOD seconds push FACTOR times as fast for LENGTH seconds, as in 30:3:10",
        ),
        Argument("--seed", type=int, default=0, metavar="N", help="other numbers, other traffic"),
    )
    creates_store = True

    def run(self, store: Store, options: Options) -> None:
        """Run the load and print what it did."""
        url = self.store_url(options)
        if url.startswith("memory:"):
            raise CommandError("memory: is private to one process: load needs a store that other processes can open.")
        planned = with_trouble(plans(options["queues"], prefix=options["prefix"], seed=options["seed"]))
        failed: ProcessFailed | None = None
        with Interruption() as interruption:
            create_queues(store, planned)
            load = LoadRun(url, planned, seed=options["seed"])
            try:
                load.start(
                    producers=options["producers"],
                    push_pace=Pace(rate=options["push_rate"], burst=options["burst"]),
                    workers=options["workers"],
                    pop_pace=Pace(rate=options["pop_rate"]),
                )
                self._watch(load, options["seconds"])
            except Interrupted:
                pass  # the way to end a load
            except ProcessFailed as error:
                failed = error
            finally:
                interruption.finish(load.stop)
        stats = load.stats()
        self.answer({**stats._asdict(), "seconds": round(stats.seconds, 3)}, _result(stats))
        if failed is not None:
            raise CommandError(str(failed))

    def _watch(self, load: LoadRun, seconds: float | None) -> None:
        pause = threading.Event()
        before = load.stats()
        with self._line() as (show, tick):
            while seconds is None or before.seconds < seconds:
                left = tick if seconds is None else min(tick, seconds - before.seconds)
                pause.wait(max(left, 0.001))
                now = load.stats()
                show(_status(before, now))
                before = now

    @contextmanager
    def _line(self) -> Iterator[tuple[Callable[[str], None], float]]:
        """Yield a function that shows a state on a terminal, and the seconds between two."""
        if self.stderr.isatty():
            with Live(console=console(self.progress_stream()), auto_refresh=False, transient=True) as live:
                yield lambda text: live.update(Text(text), refresh=True), _TERMINAL_TICK
        else:
            yield lambda text: None, _PIPE_TICK


def _result(stats: LoadStats) -> str:
    told = [f"Pushed {stats.pushed} and took {stats.taken} items in {stats.seconds:.1f} s"]
    for count, what in (
        (stats.empty, "takes found nothing"),
        (stats.refused, "were refused"),
        (stats.dropped, "came too late and were dropped"),
    ):
        if count:
            told.append(f"{count} {what}")
    return "; ".join(told) + "."


def _status(before: LoadStats, now: LoadStats) -> str:
    seconds = max(now.seconds - before.seconds, 0.001)
    pushed, taken = ((new - old) / seconds for old, new in ((before.pushed, now.pushed), (before.taken, now.taken)))
    parts = [f"{write.rate(pushed)} pushed/s", f"{write.rate(taken)} taken/s"]
    parts += [f"{write.number(now.pushed)} pushed", f"{write.number(now.taken)} taken"]
    if now.dropped:
        parts.append(f"{write.number(now.dropped)} too late")
    return " · ".join(parts)
