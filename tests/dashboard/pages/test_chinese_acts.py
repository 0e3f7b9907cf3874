"""What was done, in Simplified Chinese: the audit, the trash, jobs, and items by their history."""

from datetime import UTC, datetime, timedelta

import pytest

from queues import Actions, Query, Queue, Store
from queues.background.unclaimed_staging import UNCLAIMED_BY
from queues.bulk.runner import JobRunner
from tests.dashboard.conftest import Desk
from tests.dashboard.pages.test_chinese import english


def ids(queue: Queue) -> list[str]:
    return [item.id for item in queue.items(limit=50).items]


@pytest.fixture
def done(store: Store) -> Actions:
    """Everything that a person can do, once."""
    acts = store.actions("甲")
    orders = acts.create_queue("订单")
    acts.create_queue("邮件", kind="fifo")
    acts.create_queue("目标")
    acts.push_undoably("订单", [(b"%d" % n, n) for n in range(12)])
    acts.push("邮件", b"1")
    popped = acts.pop("订单")
    acts.undo(popped.trash_id)
    acts.pop("订单", end="max", reason="因")
    acts.pop("邮件")
    ready = ids(orders)
    acts.delete_items("订单", ready[:1])
    moved = acts.move_items("订单", ready[1:2], "目标")
    acts.undo(moved.trash_id or "")
    acts.move_items("订单", ready[1:2], "目标", priority=7)
    acts.reprioritize("订单", ready[2:3], priority=9)
    acts.reprioritize("订单", ready[2:3], shift=1)
    acts.reprioritize("订单", ready[2:3], place="front")
    acts.edit_item("订单", ready[3], b"8", expect=orders.find(ready[3]).value)
    acts.delay("订单", ready[4:6], delay=timedelta(hours=1))
    acts.reschedule("订单", ready[4:5], delay=timedelta(hours=2))
    acts.promote("订单", ready[5:6])
    lease = acts.lease("订单", seconds=60)
    acts.release("订单", [lease.item.id])
    lease = acts.lease("订单", seconds=60)
    acts.ack("订单", lease.item.id)
    orders.configure(max_attempts=1)
    held = orders.lease(seconds=60)
    orders.release(held)
    acts.retry_dead("订单", [held.item.id])
    acts.configure(
        "订单",
        note="注",
        runbook="https://1.2/",
        redact=("键",),
        max_attempts=3,
        max_depth=9_000,
        max_value=80,
        closed=True,
    )
    acts.configure("订单", closed=False, max_depth=None)
    acts.pause("订单", reason="因", until=datetime.now(UTC) + timedelta(hours=1))
    acts.resume("订单")
    acts.rename_queue("目标", "去处")
    acts.purge("去处", confirm="去处")
    acts.undo(acts.delete_queue("邮件", confirm="邮件"))
    acts.delete_queue("邮件", confirm="邮件")
    acts.attach("外来", prefix=("外来",))
    acts.detach("外来")
    store.actions(UNCLAIMED_BY).pop("订单")
    return acts


def test_the_audit_and_the_trash_are_all_chinese(chinese_admin: Desk, store: Store, done: Actions) -> None:
    verbs = {entry.verb for entry in store.audit.entries(limit=200).entries}
    assert len(verbs) >= 22, "hardly everything was done"
    for address in (
        "/audit/",
        "/audit/?verb=move",
        "/trash/",
        "/trash/?act=push",
        "/queues/订单/",
        "/queues/订单/?state=trash",
    ):
        page = chinese_admin.open(address)
        assert not english(page.html), address
    for entry in store.audit.entries(limit=200).entries:
        if entry.queue == "订单" and entry.item:
            assert not english(chinese_admin.open(f"/queues/订单/items/{entry.item}/").html), entry.verb


def test_jobs_of_every_kind_are_told_in_chinese(chinese_admin: Desk, store: Store, done: Actions) -> None:
    jobs = [
        done.begin_bulk("move", "订单", to="去处", low=3, rate=50),
        done.begin_bulk("reprioritize", "订单", shift=2, query=Query(state="ready", text="1")),
        done.begin_bulk("delete", "订单", high=2),
    ]
    for job in jobs:
        assert not english(chinese_admin.open(f"/jobs/{job.id}/").html)
    done.cancel_bulk(jobs[0].id)
    runner = JobRunner(store.context)
    for _ in range(30):
        runner.round()
    undo = done.undo(jobs[2].id).job
    for _ in range(10):
        runner.round()
    for address in ("/jobs/", *(f"/jobs/{job.id}/" for job in (*jobs, undo))):
        assert not english(chinese_admin.open(address).html), address
