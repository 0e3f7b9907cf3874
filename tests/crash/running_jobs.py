"""What the killed children do: run whatever jobs a store has, as the site does, telling of every round."""

import time

from queues import open_store
from tests.crash.harness import Report


def run_jobs(report: Report, url: str, minutes: str) -> None:
    """Run jobs until this process is killed; by its clock all that other processes held has lapsed."""
    with open_store(url, clock=lambda: time.time() + int(minutes) * 60) as store:
        runner, rounds = store.job_runner(), 0
        while True:
            report.begin(f"round {rounds}")
            runner.round()
            report.acknowledge(f"round {rounds}")
            rounds += 1
