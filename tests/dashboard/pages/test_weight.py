"""What a visit to the overview weighs on the wire: its page, and everything that the page needs the first time."""

import gzip
import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from django.contrib.staticfiles import finders

from pqadmin.live import monitor as monitors
from pqadmin.load import plan as planning
from pqadmin.load.plan import plans
from pqadmin.load.run import create_queues
from queues import Store
from tests.dashboard.conftest import Desk

FIRST_VISIT, LATER = 100_000, 16_000
QUEUES = 130
_LINKS = re.compile(r'(?:href|src)="/static/([^"#]+)')
#: What collected files carry in their names, where another test has collected them.
_HASH = re.compile(r"\.[0-9a-f]{12}\.")
_IMPORTS = re.compile(r'(?:from|import) "\./([^"]+)"')


def test_the_first_visit_is_light_and_later_ones_are_lighter(operator: Desk, store: Store) -> None:
    def fill(first: int) -> None:
        def some(tr: object) -> None:
            for number in range(first, min(first + 10, QUEUES)):
                queue = store.create_queue(f"shop:{number % 7}:orders-{number:03}", tr=tr)
                for item in range(3):
                    value = json.dumps({"order": number * 7919 + item, "customer": f"c{number * 31 % 997}"})
                    queue.push(value.encode(), priority=number * item % 50, tr=tr)

        store.transact(some)

    for first in range(0, QUEUES, 10):
        fill(first)
    answer = operator.client.get("/", headers={"Accept-Encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    page = gzip.decompress(answer.content).decode()
    assert page.count("<tr data-queue=") == 100 + ('id="row-template"' in page)

    words = re.findall(r'src="(/words/[^"]+)"', page)
    assert len(words) == 1
    seen = {words[0]: len(operator.client.get(words[0], headers={"Accept-Encoding": "gzip"}).content)}
    todo = set(_LINKS.findall(page))
    while todo:
        name = todo.pop()
        path = finders.find(_HASH.sub(".", name))
        assert path is not None, name
        content = Path(path).read_bytes()
        seen[name] = len(gzip.compress(content, 9))
        if name.endswith(".js"):
            folder = name.rpartition("/")[0]
            todo |= {f"{folder}/{other}" for other in _IMPORTS.findall(content.decode())} - seen.keys()
    weight = len(answer.content) + sum(seen.values())
    heaviest = sorted(seen.items(), key=lambda pair: -pair[1])[:8]
    print(f"page {len(answer.content):,} B, {len(seen)} assets, together {weight:,} B; {heaviest}")
    assert len(answer.content) <= LATER
    assert weight <= FIRST_VISIT, heaviest


def test_a_window_of_ten_thousand_busy_queues_is_as_light(
    operator: Desk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plans(10_000, prefix="", seed=1)
    shown = [*planned[:60], *planned[3_000:3_070]]
    random = Random(1)
    create_queues(store, shown)
    queues = {plan.name: store.queue(plan.name) for plan in shown}
    for plan in shown:
        planning.push(queues[plan.name], plan, random, 10)
    later = 0.0
    monitor = monitors.Monitor(clock=lambda: time.monotonic() + later)
    monkeypatch.setattr(monitors, "_monitor", monitor)
    monitor.refresh()
    for _ in range(3):
        for number, plan in enumerate(random.choices(shown, k=150)):
            if number % 2 == 0:
                planning.push(queues[plan.name], plan, random, 1)
            elif plan.kind == "fifo":
                queues[plan.name].dequeue()
            else:
                queues[plan.name].pop_many(1, end=plan.end)
        later += 6.0
        monitor.refresh()
    rows = monitor.board.overview(time.monotonic() + later, datetime.now(UTC)).rows
    assert sum(1 for row in rows if row.rate_in) > QUEUES / 2, "most have a rate"
    answer = operator.client.get("/", headers={"Accept-Encoding": "gzip"})
    page = gzip.decompress(answer.content).decode()
    assert page.count("<tr data-queue=") == 100
    print(f"page {len(answer.content):,} B, plain {len(page):,}")
    assert len(answer.content) <= LATER
