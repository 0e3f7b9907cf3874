"""move, purge and undo by command."""

from queues import Queue
from tests.commands.conftest import Run, Shop


def values(queue: Queue) -> list[bytes]:
    return [item.value for item in queue.items(limit=1_000).items]


def fill(shop: Shop) -> tuple[Queue, Queue]:
    jobs, review = shop.store.create_queue("jobs"), shop.store.create_queue("review")
    jobs.push_many([(b"a", 1), (b"b", 2), (b"c", 3)])
    return jobs, review


def test_items_are_moved_by_id_and_the_move_is_undone(run: Run, shop: Shop) -> None:
    jobs, review = fill(shop)
    ids = [item.id for item in jobs.items().items]
    moved = run("move", "jobs", "review", "--ids", ids[0], ids[2], "--priority=9", "--reason", "why", "--json").json
    assert (moved["from"], moved["to"], moved["items"], moved["job"]) == ("jobs", "review", 2, None)
    assert values(review) == [b"a", b"c"]
    assert review.peek_min().priority == 9
    assert shop.store.audit.entries().entries[0].reason == "why"
    missing = run("move", "jobs", "review", "--ids", ids[0])
    assert (missing.code, "not in this queue" in missing.error) == (1, True)
    review.pop_min()
    refused = run("undo", moved["trash_id"])
    assert (refused.code, "1 of the 2 items has gone on" in refused.error) == (1, True)
    undone = run("undo", moved["trash_id"], "--partial", "--json").json
    assert undone == {"queue": "jobs", "items": 1, "skipped": 1}
    assert values(jobs) == [b"b", b"c"]


def test_all_items_are_moved_gone_on_with_and_undone(run: Run, shop: Shop) -> None:
    jobs, review = fill(shop)
    job = shop.store.actions("ann").begin_bulk("move", "jobs", to="review").id
    assert run("move", "review", "jobs", "--resume", job).code == 1
    assert values(jobs) == [b"a", b"b", b"c"]
    assert run("move", "jobs", "review", "--resume", job, "--json").json["items"] == 3
    assert values(review) == [b"a", b"b", b"c"]
    back = run("move", "review", "jobs", "--all")
    assert "Moved 3 items from review to jobs." in back.out
    assert run("undo", back.out.partition("pqadmin undo ")[2].split()[0], "--json").json == {
        "queue": "review",
        "items": 3,
        "skipped": 0,
    }
    assert values(review) == [b"a", b"b", b"c"]


def test_a_move_of_all_that_failed_says_so_and_is_not_gone_on_with(run: Run, shop: Shop) -> None:
    jobs = shop.store.create_queue("jobs", priority_type="float")
    review = shop.store.create_queue("review")
    jobs.push(b"a", priority=1.5)
    failed = run("move", "jobs", "review", "--all")
    (job,) = shop.store.actions("ann").jobs()
    assert (failed.code, job.status) == (1, "failed")
    assert f"{job.id} has failed" in failed.error
    again = run("move", "jobs", "review", "--resume", job.id)
    assert (again.code, f"{job.id} has failed" in again.error, again.out) == (1, True, "")
    assert (values(jobs), values(review)) == ([b"a"], [])
    assert run("move", "jobs", "review", "--all", "--priority=1").code == 0
    assert values(review) == [b"a"]


def test_a_queue_is_purged_with_its_name_and_comes_back(run: Run, shop: Shop) -> None:
    jobs, _ = fill(shop)
    assert run("purge", "jobs", "--confirm", "job").code == 1
    assert jobs.depth() == 3
    purged = run("purge", "jobs", "--confirm", "jobs", "--json").json
    assert (purged["queue"], purged["items"], len(purged["trash_ids"])) == ("jobs", 3, 1)
    assert jobs.depth() == 0
    assert "held nothing" in run("purge", "jobs", "--confirm", "jobs").out
    assert "3 items are as before" in run("undo", *purged["trash_ids"]).out
    assert values(jobs) == [b"a", b"b", b"c"]
    assert run("undo", *purged["trash_ids"]).code == 1
    assert run("undo", "nonsense").code == 1
