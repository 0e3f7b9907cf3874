"""Fuzzed requests: no address answers with a server error, whatever its fields hold."""

import random
import re
from itertools import count
from pathlib import Path

import pytest
from django.test import Client

from pqadmin.accounts.rights import Role
from pqadmin.store import get_store
from tests.accounts.test_safety import ADDRESSES

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
#: Fields that forms and addresses have.
FIELDS = sorted(
    {
        name
        for path in (ROOT / "templates").rglob("*.html")
        for name in re.findall(r'name="([a-z_]+)"', path.read_text(encoding="utf-8"))
    }
    | {"after", "before", "end", "from", "limit", "order", "priority", "q", "range", "sort", "state", "until", "view"}
)
VALUES = [
    "",
    "0",
    "-1",
    "1e400",
    "9" * 400,
    "\x00",
    "\ud7ff\uffff",
    "nan",
    "..",
    "%00%ff",
    "0" * 40,
    "f" * 40 + "-" + "0" * 16,
    "2026-02-30T25:61",
    "0001-01-01T00:00",
    "9999-12-31T23:59:59.999999",
    "<script>alert(1)</script>",
    "[[[[" * 50,
    '{"a": ' * 50,
    "jobs",
    "ready",
    "max",
    "on",
    "\u202e\u3164",
    "a" * 3_000,
    "*?" * 100,
]
#: Of each role.
REQUESTS = 120


@pytest.mark.parametrize("role", [Role.ADMIN, Role.VIEWER])
def test_no_fuzzed_request_ends_in_a_server_error(role: Role, person) -> None:
    dice = random.Random(f"fuzzed requests of {role}")
    get_store().create_queue("jobs", exist_ok=True)
    client = Client(raise_request_exception=False)
    people = (person(role, f"{role}-{n}") for n in count())
    client.force_login(next(people))
    failed = []
    for _ in range(REQUESTS):
        _name, path = dice.choice(ADDRESSES)
        fields = {
            dice.choice(FIELDS): dice.choice([dice.choice(VALUES), [dice.choice(VALUES), dice.choice(VALUES)]])
            for _ in range(dice.randint(0, 6))
        }
        method = dice.choice(["GET", "POST"])
        answer = client.get(path, fields) if method == "GET" else client.post(path, fields)
        if hasattr(answer, "streaming_content"):
            b"".join(answer) if not answer.is_async else answer.close()
        if answer.status_code >= 500:
            failed.append((method, path, fields, answer.status_code))
        if answer.status_code == 302:  # signed out, or the person is another one now
            client.force_login(next(people))
    assert failed == []
