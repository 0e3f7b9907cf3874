"""What a visit to the overview weighs on the wire: its page, and everything that the page needs the first time."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

from django.contrib.staticfiles import finders

from queues import Store
from tests.dashboard.conftest import Desk

FIRST_VISIT, LATER = 100_000, 15_000
QUEUES = 130
_LINKS = re.compile(r'(?:href|src)="/static/([^"#]+)')
#: What collected files carry in their names, where another test has collected them.
_HASH = re.compile(r"\.[0-9a-f]{12}\.")
_IMPORTS = re.compile(r'(?:from|import) "\./([^"]+)"')


def test_the_first_visit_is_light_and_later_ones_are_lighter(operator: Desk, store: Store) -> None:
    def fill(first: int) -> None:
        def some(tr: object) -> None:
            for number in range(first, min(first + 10, QUEUES)):
                queue = store.create_queue(f"shop:{number % 7}:orders-{number:03}", tr=tr)  # type: ignore[arg-type]
                for item in range(3):
                    value = json.dumps({"order": number * 7919 + item, "customer": f"c{number * 31 % 997}"})
                    queue.push(value.encode(), priority=number * item % 50, tr=tr)  # type: ignore[arg-type]

        store.transact(some)

    for first in range(0, QUEUES, 10):
        fill(first)
    answer = operator.client.get("/", headers={"Accept-Encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    page = gzip.decompress(answer.content).decode()
    assert page.count("data-queue-id=") == 100 + ('id="row-template"' in page)

    todo, seen = set(_LINKS.findall(page)), {}
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
