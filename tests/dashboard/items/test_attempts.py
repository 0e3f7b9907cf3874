"""An item's attempts and timeline on its page, and dead items by the errors that they died of."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from pqadmin.accounts.roles import Role
from pqadmin.display.error_text import redacted
from pqadmin.display.redaction import Redaction
from pqadmin.pages import error_groups
from pqadmin.pages.error_groups import dead_errors
from queues import Actions, Item, Job, Queue, Store
from queues.admin import error_group
from tests.dashboard.audit.test_audit import body
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen
from tests.waiting import await_true

SECRET = 'KeyError: {"password": "hunter2", "n": 1} and {\'password\': \'hunter2\'}'


@pytest.fixture
def jobs(store: Store) -> Queue:
    queue = store.create_queue("jobs")
    queue.configure(max_attempts=2)
    return queue


def fail(jobs: Queue, error: str, traceback: str = "") -> Item:
    return jobs.release(jobs.lease(seconds=60, worker="render-7"), reason=error, traceback=traceback)


def die(jobs: Queue, *errors: str) -> list[Item]:
    """Push an item for each error and let it die of that."""
    dead = []
    for error in errors:
        jobs.push(b"x", priority=1)
        for _ in range(2):
            item = fail(jobs, error)
        dead.append(item)
    return dead


def timeline(page: Screen) -> list[str]:
    """Return the lines of the timeline, as a person reads them."""
    part = page.html[page.html.index('id="history-title"') :]
    lines = re.findall(r"<li>(.*?)</li>", part, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", line.split("<small>")[0]).split()) for line in lines]


def test_an_item_shows_its_attempts_the_newest_first(operator: Desk, jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    jobs.lease(seconds=0.001, worker="died-3")
    await_true(jobs.expire)
    fail(jobs, "ValueError: <b>no</b>", "Traceback:\n  line\x1b[31m\nValueError: <b>no</b>")
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    text = page.text[page.text.index("the last 20") : page.text.index("Timeline")]
    last = text.index("died-3 lost the lease: it expired")
    assert text.index("render-7 released; the item died") < text.index("ValueError: <b>no</b>") < last
    assert "Traceback: line�[31m ValueError: <b>no</b>" in text[:last]


def test_an_item_without_attempts_shows_none(operator: Desk, jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert 'id="attempts"' not in page.html
    assert timeline(page) == ["pushed"]


def test_the_timeline_tells_what_is_known(operator: Desk, ann: Actions, jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    for error in ("first", "second"):
        lease = jobs.lease(seconds=60, worker="w")
        jobs.release(lease, reason=error)
    ann.retry_dead("jobs", [item.id])
    ann.delay("jobs", [item.id], delay=timedelta(hours=1))
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert timeline(page) == [
        "due",
        "ann delayed",
        "ann retried",
        "w released; the item died attempt 2 second",
        "w leased attempt 2",
        "w released attempt 1 first",
        "w leased attempt 1",
        "pushed",
    ]


def test_what_a_person_pushed_is_told_once(operator: Desk, store: Store, jobs: Queue) -> None:
    pushed = store.actions("ann").push("jobs", b"x", priority=1)
    page = operator.open(f"/queues/jobs/items/{pushed.id}/")
    assert timeline(page) == ["ann pushed"]


def test_a_lease_by_a_person_is_told_once(operator: Desk, ann: Actions, jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    ann.lease("jobs", expect=item.id, seconds=60)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert timeline(page) == ["ann leased attempt 1", "pushed"]
    ann.ack("jobs", item.id)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert timeline(page) == ["ann acknowledged", "ann leased attempt 1", "pushed"]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_release_by_a_person_is_not_told_as_one_of_the_worker(
    operator: Desk, ann: Actions, jobs: Queue, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    item = jobs.push(b"x", priority=1)
    if at_once:  # all of it in one millisecond
        clock = jobs.opened.context.clock
        now = clock() + 0.001
        monkeypatch.setattr(type(clock), "__call__", lambda self: now)
    fail(jobs, "own")
    jobs.lease(seconds=60, worker="hung-1")
    ann.release("jobs", [item.id], reason="no news")
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert timeline(page) == [
        "ann released; the item died attempt 2 of hung-1 no news",
        "hung-1 leased attempt 2",
        "render-7 released attempt 1 own",
        "render-7 leased attempt 1",
        "pushed",
    ]
    attempts = page.text[page.text.index("the last 20") : page.text.index("Timeline")]
    assert "2 hung-1 taken back by ann; the item died no news" in attempts
    assert "1 render-7 released own" in attempts


def test_a_bulk_release_is_told_once(operator: Desk, ann: Actions, jobs: Queue) -> None:
    item = jobs.push(b"x", priority=1)
    jobs.lease(seconds=60, worker="hung-1")
    job = ann.begin_bulk("release", "jobs", state="leased", reason="no news")
    ann.run_bulk(job.id)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    lines = timeline(page)
    assert lines[0].startswith("ann released attempt 1 of hung-1 · by a bulk job")
    assert lines[1:] == ["hung-1 leased attempt 1", "pushed"]


@pytest.mark.parametrize("after", ["leased again", "dead"])
def test_a_workers_own_release_during_a_bulk_release_stays_its_own(
    operator: Desk, ann: Actions, jobs: Queue, after: str
) -> None:
    jobs.configure(max_attempts=2 if after == "dead" else None)
    first, item = jobs.push_many([(b"x", 1), (b"y", 2)])
    jobs.lease(seconds=60, worker="hung-1")
    own = jobs.lease(seconds=60, worker="render-7")
    job = ann.begin_bulk("release", "jobs", state="leased", rate=1.5)

    def between(job: Job) -> bool:
        if job.done == 1 and jobs.find(item.id).attempts == 1:
            jobs.release(own)
            jobs.pop_min()
            jobs.lease(seconds=60, worker="hung-2")
        return True

    assert ann.run_bulk(job.id, progress=between).done == 2
    assert jobs.find(first.id) is None
    if after == "leased again":
        jobs.release(jobs.lease(seconds=60, worker="render-8"))
        jobs.lease(seconds=60, worker="render-9")
    lines = timeline(operator.open(f"/queues/jobs/items/{item.id}/"))
    assert lines[-3:] == ["render-7 released attempt 1", "render-7 leased attempt 1", "pushed"]
    assert lines[-5].startswith("ann released")
    assert "attempt 2 of hung-2 · by a bulk job" in lines[-5]
    assert [line for line in lines if "bulk job" in line] == [lines[-5]]


def test_an_item_in_the_trash_still_has_its_timeline(operator: Desk, store: Store, jobs: Queue) -> None:
    (dead,) = die(jobs, "boom")
    store.actions("ann").delete_item("jobs", dead.id)
    lines = timeline(operator.open(f"/queues/jobs/items/{dead.id}/"))
    assert lines[:2] == ["ann deleted", "render-7 released; the item died attempt 2 boom"]
    assert lines[-1] == "pushed"


def test_errors_are_redacted_as_values_are(operator: Desk, jobs: Queue) -> None:
    jobs.configure(redact=["password"])
    item = jobs.push(b'{"password": "hunter2"}', priority=1)
    for _ in range(2):
        fail(jobs, SECRET, f"Traceback\n{SECRET}")
    for address in (f"items/{item.id}/", "?state=dead", "?state=dead&q=hunter2", "?state=dead&q=KeyError"):
        assert "hunter2" not in operator.open(f"/queues/jobs/{address}").html.replace("q=hunter2", "").replace(
            'value="hunter2"', ""
        ), address
    assert "0 found" in operator.open("/queues/jobs/?state=dead&q=hunter2")
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert "[redacted]" in page
    revealed = operator.post(*page.form("reveal/"), reason="looking")
    assert "hunter2" in revealed.html[revealed.html.index('id="attempts"') :]


@pytest.mark.parametrize(
    ("error", "group"),
    [
        ("KeyError: 'customer'", "KeyError: 'customer'"),
        ("ValueError: order 4711 of 2026-11-23", "ValueError: order # of #"),
        ("X: 01a3185c50000cdf5fb6a8ee27d0b09cafd7b24e", "X: #"),
        ("X: 123e4567-e89b-12d3-a456-426614174000 at 0x7f88aa", "X: # at #"),
        ("a\n\tb\x00 c", "a b c"),
        (SECRET, 'KeyError: {"password": …, "n": …} and {\'password\': …}'),
        ('X: {"password": "hunt', 'X: {"password": …'),
        ("X: {'password': b'hunter2', 'n': 1}", "X: {'password': …"),
        ("X: {'password': u'hunter2'}", "X: {'password': …"),
        ("X: {'password': SecretStr('hunter2')}", "X: {'password': …"),
        ("X: {'password': ('hunter2',)}", "X: {'password': …"),
        ("X: {'password': {'hunter2'}}", "X: {'password': …"),
        ('X: {"password": [["a"], "hunter2"]}', 'X: {"password": …'),
        (r'X: "{\"password\": \"hunter2\", \"n\": 1}" at 7', r'X: "{\"password\": …, \"n\": …}" at #'),
        (r"""X: '{"password": "\\", hunter2", "n": 1}'""", 'X: \'{"password": …'),
        (r'X: "{\"password\": \"a\\\"hunter2\"}"', r'X: "{\"password\": …'),
        ("\u202e" * 10_000, "\u202e" * 200),
        ("", ""),
    ],
)
def test_errors_that_differ_in_ids_and_numbers_are_one_group(error: str, group: str) -> None:
    assert error_group(error) == group


def test_hostile_errors_are_redacted_without_an_error() -> None:
    rules = Redaction(["password"])
    for text in ('"' * 5_000, '"password": \'', "{'password': \"", "\\" * 999 + '"', "é{'password': 'é'}é"):
        redacted(text, rules)
    assert redacted("é{'password': 'é'}é", rules) == "é{'password': [redacted]}é"


def test_dead_items_are_counted_by_error(operator: Desk, jobs: Queue) -> None:
    items = die(jobs, "Timeout: 1 s", "Timeout: 2 s", "KeyError: 'a'")
    items += die(jobs, "Timeout: 3 s")
    found = dead_errors("jobs")
    assert [(one.error, one.count, one.sample) for one in found.groups] == [
        ("Timeout: # s", 3, items[3].id),
        ("KeyError: 'a'", 1, items[2].id),
    ]
    assert (found.groups[0].first, found.groups[0].last) == (items[0].died_at, items[3].died_at)
    assert (found.before, found.looked, found.cursor) == (0, 4, None)
    page = operator.open("/queues/jobs/?state=dead")
    assert "By error of all 4" in page
    shown = page.response.context
    assert shown["dead_errors"]["at"] >= shown["now"], "errors are read after the list, and have a moment of their own"
    assert page.text.index("Timeout: # s") < page.text.index("KeyError: 'a'")


def test_very_many_dead_items_are_looked_at_in_parts(
    operator: Desk, jobs: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_groups, "SECONDS", 60.0)  # however busy the machine is
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"x", n) for n in range(900)])
    for lease in jobs.lease_many(900):
        jobs.release(lease, reason="Timeout: 1 s")
    first = dead_errors("jobs", most=500)
    assert (first.before, first.looked, first.groups[0].count) == (0, 500, 500)
    rest = dead_errors("jobs", first.cursor, most=500)
    assert (rest.before, rest.looked, rest.cursor) == (500, 400, None)
    page = operator.client.get("/queues/jobs/", {"state": "dead", "errors": first.cursor})
    assert "501 to 900" in " ".join(page.content.decode().split())
    strange = operator.client.get("/queues/jobs/", {"state": "dead", "errors": "x"})
    assert "of all 900" in strange.content.decode()


def test_a_group_shows_no_value_that_is_redacted(operator: Desk, jobs: Queue) -> None:
    jobs.configure(redact=["password"])
    die(jobs, "X: {'password': b'sesame', 'n': 1}")
    page = operator.open("/queues/jobs/?state=dead")
    assert "sesame" not in page.html
    assert "X: {'password': [redacted]" in page
    (link,) = [link for link in page.links if "act=retry" in link and "error=" in link]
    confirm = operator.open(link)
    assert "dead by “X: {'password': [redacted]" in confirm
    (form,) = [form for form in confirm.forms if "count" in form[1]]
    begun = operator.post(*form)
    assert "dead by “X: {'password': [redacted]" in begun
    assert "sesame" not in confirm.html + begun.html


def test_a_group_is_retried_as_one(operator: Desk, store: Store, jobs: Queue) -> None:
    die(jobs, "Timeout: 1 s", "Timeout: 2 s", "KeyError: 'a'")
    page = operator.open("/queues/jobs/?state=dead")
    (link,) = [link for link in page.links if "act=retry" in link and "Timeout" in link]
    confirm = operator.open(link)
    assert "dead by “Timeout: # s”" in confirm
    (form,) = [form for form in confirm.forms if "count" in form[1]]
    assert form[1]["count"] == "2"
    operator.post(*form)
    (job,) = store.actions("ada").jobs()
    assert (job.act, job.wanted.error) == ("retry", "Timeout: # s")
    store.actions("ada").run_bulk(job.id)
    assert (jobs.depth("ready"), jobs.depth("dead")) == (2, 1)
    assert [item.reason for item in jobs.dead().items] == ["KeyError: 'a'"]
    undo = store.actions("ada").undo(job.id)
    assert undo is not None


def test_a_group_is_listed(operator: Desk, jobs: Queue) -> None:
    die(jobs, "Timeout: 1 s", "KeyError: 'a'")
    page = operator.open("/queues/jobs/")
    page = operator.open("/queues/jobs/?state=dead&error=Timeout%3A+%23+s")
    assert "Timeout: 1 s" in page
    assert "KeyError" not in page
    assert "By error" not in page
    assert "Error: Timeout: # s" in page
    assert page.form("#items")[1]["error"] == "Timeout: # s", "a further search stays in the group"


def test_a_viewer_may_look_and_not_act(desk: Callable[..., Desk], jobs: Queue) -> None:
    die(jobs, "Timeout: 1 s")
    page = desk(Role.VIEWER).open("/queues/jobs/?state=dead")
    assert "Timeout: # s" in page
    assert not [link for link in page.links if "act=retry" in link or "act=delete" in link]


def test_an_export_has_the_attempts_redacted(operator: Desk, jobs: Queue) -> None:
    jobs.configure(redact=["password"])
    die(jobs, SECRET)
    for kind in ("ndjson", "csv"):
        _, text = body(operator, f"/queues/jobs/export/?state=dead&details=1&format={kind}")
        assert "hunter2" not in text
        assert text.count("render-7") == 2
