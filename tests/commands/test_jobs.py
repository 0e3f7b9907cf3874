"""`pqadmin jobs`: list, show, run, cancel, resume, undo."""

from queues import Job, Queue
from queues.items.scan import Query
from tests.commands.conftest import Run, Shop

N = 30


def fill(shop: Shop) -> tuple[Queue, Job]:
    jobs = shop.store.create_queue("jobs")
    shop.store.create_queue("review")
    jobs.push_many([(b"bad" if n % 3 else b"good", n % 5) for n in range(N)])
    return jobs, shop.store.actions("ann").begin_bulk(
        "move", "jobs", query=Query(text="BAD"), to="review", reason="why"
    )


def test_a_job_is_listed_run_shown_and_undone(run: Run, shop: Shop) -> None:
    jobs, job = fill(shop)
    assert job.id in run("jobs").out
    (listed,) = run("jobs", "list", "--running", "--json").json["jobs"]
    assert (listed["job"], listed["status"], listed["query"], listed["by"]) == (
        job.id,
        "running",
        {"state": "ready", "text": "BAD"},
        "ann",
    )
    ran = run("jobs", "run", "--json").json
    assert (ran["status"], ran["met"], ran["items"], ran["undoes"]) == ("done", N, 20, None)
    assert (jobs.depth(), shop.store.queue("review").depth()) == (10, 20)
    assert run("jobs", "list", "--running").out == "No job is running.\n"
    shown = run("jobs", "show", job.id).out
    assert "30 of 30 looked at, 20 changed" in shown
    assert f"Undo: pqadmin jobs undo {job.id} --store {shop.url}\n" in shown
    undone = run("jobs", "undo", job.id, "--json").json
    assert (undone["act"], undone["status"], undone["items"], undone["undoes"]) == ("undo", "done", 20, job.id)
    assert jobs.depth() == N
    assert run("jobs", "show", job.id, "--json").json["undone_by"] == undone["job"]
    assert [line["job"] for line in run("jobs", "--json").json["jobs"]] == [undone["job"], job.id]
    assert [line["job"] for line in run("jobs", "--json", "--limit=1").json["jobs"]] == [undone["job"]]


def test_a_job_is_canceled_and_resumed(run: Run, shop: Shop) -> None:
    jobs, job = fill(shop)
    assert run("jobs", "cancel", job.id, "--json", "--reason=wait").json["status"] == "canceled"
    assert jobs.depth() == N
    assert run("jobs", "run", job.id, "--json").json["items"] == 0
    assert run("jobs", "resume", job.id, "--quiet", "--json").json["items"] == 20
    again = run("jobs", "resume", job.id)
    assert (again.code, "nothing is left of it" in again.error) == (1, True)
    verbs = [(entry.verb, entry.reason) for entry in shop.store.audit.entries(limit=10).entries]
    assert verbs == [("resume_job", ""), ("cancel_job", "wait"), ("move", "why")]


def test_what_was_undone_is_not_undone_again(run: Run, shop: Shop) -> None:
    _, job = fill(shop)
    run("jobs", "run")
    undone = shop.store.actions("ann").run_bulk(shop.store.actions("ann").undo(job.id).job.id)
    known, noted = run("jobs", "--json").json, len(shop.store.audit.entries(limit=100).entries)
    assert undone.done == 20
    for again in (run("jobs", "undo", job.id), run("undo", job.id)):
        assert (again.code, again.out) == (1, "")
        assert again.error.startswith("This was restored already, by ann at ")
    assert run("jobs", "--json").json == known
    assert len(shop.store.audit.entries(limit=100).entries) == noted


def test_an_undo_that_was_canceled_goes_on(run: Run, shop: Shop) -> None:
    jobs, job = fill(shop)
    run("jobs", "run")
    acts = shop.store.actions("ann")
    acts.cancel_bulk(acts.undo(job.id).job.id)
    assert run("jobs", "undo", job.id, "--json").json["items"] == 20
    assert jobs.depth() == N


def test_canceling_a_job_that_has_ended_is_refused(run: Run, shop: Shop) -> None:
    _, job = fill(shop)
    run("jobs", "cancel", job.id)
    again = run("jobs", "cancel", job.id)
    assert (again.code, again.out, again.error) == (1, "", "This job was canceled already: nothing was changed.")
    run("jobs", "resume", job.id)
    done = run("jobs", "cancel", job.id, "--json")
    assert (done.code, done.out, done.error) == (1, "", "This job is done: nothing was canceled.")
    assert [entry.verb for entry in shop.store.audit.entries(limit=10).entries].count("cancel_job") == 1


def test_what_cannot_be_done_is_said(run: Run, shop: Shop) -> None:
    jobs, _ = fill(shop)
    for arguments, words in (
        (("show",), "Name the job"),
        (("show", "nonsense"), "No bulk job has this id"),
        (("undo", "00" * 20), "No bulk job has this id"),
    ):
        refused = run("jobs", *arguments)
        assert (refused.code, words in refused.error) == (1, True)
    shop.store.create_queue("texts", priority_type="str")
    begun = shop.store.actions("ann").begin_bulk("move", "jobs", to="texts")
    failed = run("jobs", "run", begun.id)
    assert failed.code == 1
    assert f"The job {begun.id} has failed after 0 items" in failed.error
    assert f"at item {jobs.peek_min().id}" in failed.out
