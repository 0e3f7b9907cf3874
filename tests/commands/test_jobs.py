"""`pqadmin jobs`: list, show, run, cancel, resume, undo."""

import signal
from collections.abc import Callable

import pytest

from queues import Actions, Job, Queue
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


Meanwhile = Callable[[Actions, str], object]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Meanwhile], None]:
    """Let something happen to each bulk job that a command runs, behind its first chunk."""
    run_bulk = Actions.run_bulk

    def happens(act: Meanwhile) -> None:
        def run(acts: Actions, job_id: str, *, progress: Callable[[Job], bool], **options: object) -> Job:
            def told(job: Job) -> bool:
                act(acts, job_id)
                return progress(job)

            return run_bulk(acts, job_id, progress=told, **options)

        monkeypatch.setattr(Actions, "run_bulk", run)

    return happens


def many(shop: Shop) -> tuple[Queue, Queue]:
    """Return a queue with more items than a chunk has, and an empty one."""
    jobs = shop.store.create_queue("jobs")
    jobs.push_many([(b"x", 1)] * 1_000)
    return jobs, shop.store.create_queue("review")


def begun_move(shop: Shop) -> tuple[Actions, Job]:
    """Return the actions of a person, and a bulk job with more items than a chunk has."""
    many(shop)
    acts = shop.store.actions("ann")
    return acts, acts.begin_bulk("move", "jobs", to="review")


@pytest.mark.parametrize(
    "words", ["move jobs review --all", "undo {}", "jobs undo {}", "jobs run {}", "jobs resume {}"]
)
def test_a_job_that_was_canceled_meanwhile_is_not_told_as_done(
    run: Run, shop: Shop, meanwhile: Callable[[Meanwhile], None], words: str
) -> None:
    acts, job = begun_move(shop)
    if "undo" in words:
        acts.run_bulk(job.id, progress=lambda job: job.running)
    if "resume" in words:
        acts.cancel_bulk(job.id)
    meanwhile(lambda acts, job_id: acts.cancel_bulk(job_id))
    ended = run(*words.format(job.id).split())
    canceled = acts.jobs(1)[0] if "undo" in words or "move" in words else acts.job(job.id)
    again = f"pqadmin jobs resume {canceled.id} --store {shop.url}"
    assert (ended.code, canceled.status, canceled.total) == (1, "canceled", 1_000)
    assert f"The job {canceled.id} was canceled after {canceled.met:,} of 1,000 items" in ended.error
    assert ended.error.endswith(f"continue with {again}")
    assert ("Moved" in ended.out, "Undone" in ended.out) == (False, False)


def test_a_move_of_a_canceled_job_says_so(run: Run, shop: Shop) -> None:
    acts, job = begun_move(shop)
    acts.cancel_bulk(job.id)
    ended = run("move", "jobs", "review", "--resume", job.id)
    assert (ended.code, ended.out) == (1, "")
    assert f"The job {job.id} was canceled after 0 of 1,000 items" in ended.error


@pytest.mark.parametrize("words", [["move", "jobs", "review", "--all"], ["jobs", "run"]])
def test_a_job_that_another_process_took_over_is_not_told_as_done(
    run: Run, shop: Shop, meanwhile: Callable[[Meanwhile], None], words: list[str]
) -> None:
    many(shop)
    if words[0] == "jobs":
        shop.store.actions("ann").begin_bulk("move", "jobs", to="review")
    runs = Actions.run_bulk
    meanwhile(lambda acts, job_id: runs(acts, job_id, progress=lambda job: False))
    ended = run(*words)
    (job,) = shop.store.actions("ann").running_jobs()
    assert ended.code == 1
    assert f"Another process runs the job {job.id} now" in ended.error
    assert ended.error.endswith(f"pqadmin jobs show {job.id} --store {shop.url}")
    assert "Moved" not in ended.out


@pytest.mark.parametrize("words", ["move jobs review --all", "undo {}", "jobs undo {}", "jobs run {}"])
def test_an_interrupted_job_is_told_with_its_id(
    run: Run, shop: Shop, meanwhile: Callable[[Meanwhile], None], words: str
) -> None:
    acts, job = begun_move(shop)
    if "undo" in words:
        acts.run_bulk(job.id)
    meanwhile(lambda acts, job_id: signal.raise_signal(signal.SIGTERM))
    ended = run(*words.format(job.id).split())
    left = acts.running_jobs()[-1]
    assert (ended.code, 0 < left.met < 1_000) == (130, True)
    assert f"otherwise run: pqadmin jobs run {left.id} --store {shop.url}" in ended.error
    assert ended.error.endswith(f"To end it: pqadmin jobs cancel {left.id} --store {shop.url}")


def test_a_job_has_one_format_of_numbers(run: Run, shop: Shop) -> None:
    many(shop)[0].push_many([(b"x", 1)] * 500)
    acts = shop.store.actions("ann")
    acts.run_bulk(acts.begin_bulk("move", "jobs", to="review").id)
    assert "1,500 of 1,500 looked at, 1,500 changed, 0 left alone" in run("jobs", "show", acts.jobs(1)[0].id).out
