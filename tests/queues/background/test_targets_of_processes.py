"""Targets that one process sets, and another one judges by: the elected one, which has no environment of a site."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from queues import Store, open_store
from queues.health import Code
from tests.waiting import await_true

ROOT = Path(__file__).parents[3]
#: Judges until its input ends.
_PROCESS = """
import sys
from queues import open_store
with open_store(sys.argv[1]) as store:
    upkeep = store.upkeep()
    upkeep.start()
    print("up", flush=True)
    sys.stdin.read()
    upkeep.stop()
"""


@contextmanager
def judging(url: str) -> Iterator[None]:
    """Have another process judge."""
    arguments = [sys.executable, "-c", _PROCESS, url]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout.readline() == "up\n"
        yield
        process.communicate()


def limits(store: Store, queue_id: int) -> dict[Code, float | None]:
    """Return the limits that the queue is beyond, as the other process has recorded."""
    health = store.snapshot([queue_id]).queues[queue_id].health
    return {} if health is None else {reason.code: reason.limit for reason in health.verdict.reasons}


@pytest.mark.slow
def test_a_process_without_a_sites_environment_judges_by_what_people_set_meanwhile(url: str) -> None:
    with open_store(url) as store, ExitStack() as others:
        queue = store.create_queue("orders:eu")
        queue.push_many([(b"x", 1)] * 7)
        queue.pop_min()
        site, ana = store.actions("site"), store.actions("ana")
        site.set_default_targets(no_consumer=0, growing=0, oldest=0, dead=0)
        with judging(url):
            ana.set_targets("orders:*", depth=5)
            await_true(lambda: limits(store, queue.id) == {Code.DEEP: 5})
            ana.configure("orders:eu", target_depth=6)
            await_true(lambda: limits(store, queue.id) == {Code.DEEP: 6})
            ana.configure("orders:eu", target_depth=0)
            await_true(lambda: limits(store, queue.id) == {})
        ana.configure("orders:eu", target_depth=None)
        others.enter_context(judging(url))
        await_true(lambda: limits(store, queue.id) == {Code.DEEP: 5})
        ana.remove_targets("orders:*")
        await_true(lambda: limits(store, queue.id) == {})
