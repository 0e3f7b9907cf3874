"""How many of our modules one call passes: a push, an ack, a chunk of a bulk move, a pressed Pop button.

    python -m benchmarks modules_passed [--list]

A module is passed when one of its functions is called, in any thread, for the call. Each call is made several times
before it is counted, so nothing is counted that happens once in a process. The embedded store, one process. "Pop
button": the modules on the stack between the view that the address names and the storage engine; middleware is not
counted, as every page passes it. `--list` names the modules, with the number of calls of their functions.
"""

import argparse
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.harness import report

_ROOT = Path(__file__).resolve().parents[1]
_OURS = (f"{_ROOT}/queues/", f"{_ROOT}/pqadmin/")
_STORE = f"{_ROOT}/queues/kv/"
#: At most so many modules.
BARS = {"push": 12, "ack": 12, "chunk of a bulk move": 20, "Pop button": 14}
_WARM_UP = 3


class Counting:
    """Counts the calls of our functions by module, in all threads that start after it was made."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._on = False
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def during(self, call: Callable[[], object]) -> Counter[str]:
        """Return the calls by module while `call` ran."""
        self.calls, self._on = Counter(), True
        try:
            call()
        finally:
            self._on = False
        return self.calls

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        if self._on and event == "call":
            path = frame.f_code.co_filename
            if path.startswith(_OURS):
                self.calls[path.removeprefix(f"{_ROOT}/")] += 1


class CountViews:
    """Middleware: counts the modules on the stack between a view and the storage engine."""

    calls: Counter[str] = Counter()
    on = False

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self._get_response = get_response

    def __call__(self, request: Any) -> Any:
        try:
            return self._get_response(request)
        finally:
            type(self).on = False

    def process_view(self, request: Any, view: Any, arguments: Any, named: Any) -> None:
        """Begin to count: the last middleware before the view."""
        if request.method == "POST":
            type(self).calls, type(self).on = Counter(), True

    @classmethod
    def note(cls, frame: FrameType, event: str, argument: object) -> None:
        """Count what calls the storage engine, in any thread."""
        if cls.on and event == "call" and frame.f_code.co_filename.startswith(_STORE):
            caller = frame.f_back
            while caller is not None and (path := caller.f_code.co_filename) != __file__:
                if path.startswith(_OURS) and not path.startswith(_STORE):
                    cls.calls[path.removeprefix(f"{_ROOT}/")] += 1
                caller = caller.f_back


class Fields(HTMLParser):
    """The named inputs of the form that goes to one address."""

    def __init__(self, address: str, page: str) -> None:
        super().__init__()
        self._address, self._inside = address, False
        self.values: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in an input of the form."""
        found = dict(attrs)
        if tag == "form":
            self._inside = found.get("action") == self._address
        elif tag == "input" and self._inside and (name := found.get("name")):
            self.values[name] = found.get("value") or ""


def main(arguments: list[str]) -> list[report.Figure]:
    """Count, print, and return the number of modules of each call."""
    parser = argparse.ArgumentParser(prog="modules_passed", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the modules")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        passed = {**verbs(Path(folder)), "Pop button": pop_button(Path(folder))}
    report.heading("Modules that one call passes")
    report.table(
        ("call", "modules", "bar", "calls of our functions"),
        [(what, len(calls), BARS[what], calls.total()) for what, calls in passed.items()],
    )
    if options.list:
        for what, calls in passed.items():
            print(f"{what}:")
            for module, count in calls.most_common():
                print(f"    {module} {count}")
    return [report.at_most(f"modules: {what}", len(calls), BARS[what]) for what, calls in passed.items()]


def verbs(folder: Path) -> dict[str, Counter[str]]:
    """Count the verbs of the core, each warm, on an embedded store of its own."""
    counting = Counting()
    from queues import open_store
    from queues.bulk.chunk import Steps

    try:
        with open_store(f"lmdb:{folder}/verbs") as store:
            jobs, archive = store.create_queue("jobs"), store.create_queue("archive")
            actions = store.actions("operator")
            passed = {}
            for _ in range(_WARM_UP):
                passed["push"] = counting.during(lambda: jobs.push(b"value", 5))
            for _ in range(_WARM_UP):
                lease = jobs.lease()
                passed["ack"] = counting.during(lambda lease=lease: jobs.ack(lease))
            for _ in range(_WARM_UP):
                jobs.push_many([(b"value", number) for number in range(50)])
                job = actions.begin_bulk("move", "jobs", to="archive")
                steps = Steps(store.context, job.id)
                job = steps.hold() or job
                passed["chunk of a bulk move"] = counting.during(lambda steps=steps, job=job: steps.take(job))
                actions.run_bulk(job.id)
            assert not jobs.depth()
            assert archive.depth()
            return passed
    finally:
        threading.setprofile(None)
        sys.setprofile(None)


def pop_button(folder: Path) -> Counter[str]:
    """Count the pressed Pop button, as Django's test client sends it."""
    (folder / "data").mkdir()
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "pqadmin.settings",
        "PQADMIN_DATA": str(folder / "data"),
        "PQADMIN_STORE": f"lmdb:{folder}/site",
    }
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client
    from django.urls import reverse

    from pqadmin.accounts.roles import Role, grant
    from pqadmin.store import close_store, get_store

    settings.MIDDLEWARE.append("benchmarks.modules_passed.CountViews")
    threading.setprofile(CountViews.note)
    sys.setprofile(CountViews.note)
    call_command("migrate", verbosity=0)
    user = User.objects.create_user("operator")
    grant(user, Role.OPERATOR)
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    jobs = get_store().create_queue("jobs")
    jobs.push_many([(b"value", number) for number in range(10)])
    address = reverse("dashboard:pop", args=["jobs"])
    for _ in range(_WARM_UP):
        before = jobs.depth()
        page = client.get(address, follow=True).content.decode()
        client.post(address, Fields(address, page).values)
        assert jobs.depth() == before - 1, "the pressed button popped nothing"
    close_store()
    threading.setprofile(None)
    sys.setprofile(None)
    return CountViews.calls
