"""How soon and how reliably a queue's verdict is right: labeled scenarios, hours of each in seconds.

    python -m benchmarks verdicts [NAME …]

Each scenario is played on a store in memory with a given clock. Printed are the last verdict, the longest delay until
it was right, the seconds in which it was wrong afterwards, and the most changes in an hour that nothing had caused.
"""

import argparse
from collections.abc import Iterator
from itertools import chain

from benchmarks.harness import deployment_scenarios, everyday_scenarios, report, verdict_scenarios
from benchmarks.harness.verdict_play import Played, play
from benchmarks.harness.verdict_scenarios import Scenario


def main(arguments: list[str]) -> list[report.Figure]:
    """Play, print, and return how many scenarios went wrong."""
    parser = argparse.ArgumentParser(prog="verdicts", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of scenarios; all without any")
    parser.add_argument("--untold", action="store_true", help="consumers are those of an older release: no heartbeats")
    options = parser.parse_args(arguments)
    wanted = [each for each in _scenarios() if not options.names or any(part in each.name for part in options.names)]
    wanted = [each for each in wanted if not (each.told and options.untold)]
    played = []
    for scenario in wanted:
        played.append(play(scenario, tells=not options.untold))
        report.note(f"{scenario.name}: {', '.join(played[-1].misses) or 'right'}")
    report.heading("Verdicts")
    report.table(
        ("scenario", "hours", "verdict", "delay s", "false alarms s", "false critical s", "flips/h", ""),
        [_line(one) for one in played],
    )
    missed = [one for one in played if one.misses]
    for one in missed:
        print(f"- {one.name}: {'; '.join(one.misses)}")
    return [
        report.Figure(
            what="scenarios with a wrong verdict", value=f"{len(missed)} of {len(played)}", bar="0", met=not missed
        )
    ]


def _scenarios() -> Iterator[Scenario]:
    return chain(verdict_scenarios.scenarios(), everyday_scenarios.scenarios(), deployment_scenarios.scenarios())


def _line(one: Played) -> tuple[object, ...]:
    last = one.verdict.level.name.lower() + "".join(f", {reason.code}" for reason in one.verdict.reasons)
    return (
        one.name,
        one.minutes / 60,
        last,
        one.delay,
        one.wrong,
        one.critical,
        one.flips,
        "miss" if one.misses else "",
    )
