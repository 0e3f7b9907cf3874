"""Push templates over HTTP: kept, read by those that push, and deleted."""

from collections.abc import Callable

import pytest
from django.db import connection

from pqadmin.accounts.caller import Verb
from queues import Store
from tests.api.conftest import Program, in_thread
from tests.api.test_verbs import problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.parametrize("site", ["memory:"], indirect=True)]


async def test_a_template_is_kept_replaced_and_deleted(
    site: Store, program: Program, token: Callable[..., str]
) -> None:
    for name in ("jobs", "mail"):
        site.create_queue(name)
    typed = {"name": "night run", "value": "s3cret-value", "priority": "5", "when": "delay", "delay": "2", "unit": "h"}
    key = {"Idempotency-Key": "keep"}
    kept = await program.post("queues/jobs/templates", json=typed, headers=key)
    assert kept.status_code == 201
    number = kept.json()["id"]
    assert (await program.post("queues/jobs/templates", json=typed, headers=key)).json() == kept.json()
    fields = (await program.get(f"queues/jobs/templates/{number}")).json()["fields"]
    assert (fields["value"], fields["priority"], fields["delay"], fields["unit"]) == ("s3cret-value", "5", "2", "h")
    assert (await program.post("queues/jobs/templates", json={"name": "night run"})).json()["id"] == number
    (listed,) = (await program.get("queues/jobs/templates")).json()["templates"]
    assert (listed["id"], listed["name"]) == (number, "night run")
    assert "s3cret-value" not in repr(site.audit.entries(queue="jobs").entries)
    problem(await program.post("queues/jobs/templates", json={"name": " "}), 422, "InvalidRequest")
    problem(await program.delete(f"queues/mail/templates/{number}"), 404, "NotFound")  # of another queue
    pusher = Program(await in_thread(token, verbs=[Verb.PUSH]))
    problem(await pusher.get(f"queues/jobs/templates/{number}"), 403, "Forbidden")
    assert (await program.delete(f"queues/jobs/templates/{number}")).json()["name"] == "night run"
    problem(await program.delete(f"queues/jobs/templates/{number}"), 404, "NotFound")
    verbs = [entry.verb for entry in site.audit.entries(queue="jobs").entries]
    assert verbs == ["forget_template", "keep_template", "keep_template"]


def rename_table(table: str, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {name}")


async def test_templates_that_cannot_be_read_are_no_empty_list(site: Store, program: Program) -> None:
    site.create_queue("jobs")
    await program.post("queues/jobs/templates", json={"name": "night run"})
    await in_thread(rename_table, "dashboard_pushtemplate", "away")
    problem(await program.get("queues/jobs/templates"), 503, "DatabaseError")
    await in_thread(rename_table, "away", "dashboard_pushtemplate")
    (kept,) = (await program.get("queues/jobs/templates")).json()["templates"]
    assert kept["name"] == "night run"
