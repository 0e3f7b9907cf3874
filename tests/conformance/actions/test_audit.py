"""Looking through the audit and the trash: by person, queue, item, verb and time, in bounded steps."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from queues import Actions, Store
from queues.errors import BadLimit, NaiveTime
from queues.model import paging
from tests.conftest import Clock


def moment(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now, UTC)


def verbs(store: Store, **options: object) -> list[str]:
    return [entry.verb for entry in store.audit.entries(**options).entries]


@pytest.fixture
def busy(store: Store, clock: Clock) -> list[datetime]:
    """A store where ann and bob did things, a minute apart; returns when."""
    ann, bob = store.actions("ann"), store.actions("bob")
    ann.create_queue("jobs")
    bob.create_queue("mail", kind="fifo")
    at = []
    for act in (
        lambda: ann.push("jobs", b"a", priority=1),
        lambda: bob.push("jobs", b"b", priority=2),
        lambda: bob.push("mail", b"c"),
        lambda: ann.pop("jobs"),
        lambda: bob.pause("jobs", reason="r"),
    ):
        clock.advance(60)
        at.append(moment(clock))
        act()
    return at


def test_acts_are_found_by_verb_and_by_several_filters_at_once(store: Store, busy: list[datetime]) -> None:
    assert verbs(store, verb="push") == ["push", "push"]
    assert verbs(store, verb="push", actor="bob") == ["push"]
    assert verbs(store, queue="jobs", actor="bob") == ["pause", "push"]
    assert verbs(store, queue="jobs", verb="pop_min", actor="ann") == ["pop_min"]
    assert verbs(store, queue="mail", verb="pop_min") == []


def test_acts_are_found_by_time_to_the_millisecond(store: Store, busy: list[datetime]) -> None:
    tick = timedelta(milliseconds=1)
    assert verbs(store, since=busy[3]) == ["pause", "pop_min"]
    assert verbs(store, since=busy[3] + tick) == ["pause"]
    assert verbs(store, until=busy[0]) == ["create", "create"]
    assert verbs(store, since=busy[0], until=busy[1]) == ["push"]
    assert verbs(store, since=busy[0], until=busy[1] + tick, actor="bob") == ["push"]
    assert verbs(store, queue="jobs", since=busy[1], until=busy[4]) == ["pop_min", "push"]
    assert verbs(store, since=datetime(1, 1, 1, tzinfo=UTC), until=datetime(9999, 12, 31, tzinfo=UTC), limit=1) == [
        "pause"
    ]
    assert verbs(store, since=busy[4], until=busy[0]) == []


def test_a_time_without_a_zone_is_refused(store: Store) -> None:
    naive = datetime(2026, 1, 1)
    for times in ({"since": naive}, {"until": naive}, {"since": 1_767_225_600}):
        with pytest.raises(NaiveTime, match="time zone"):
            store.audit.entries(**times)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [2.5, "10", None, True])
def test_a_page_of_records_has_a_whole_number_of_entries(store: Store, limit: Any) -> None:
    for records in (store.audit, store.trash):
        with pytest.raises(BadLimit, match="whole number"):
            records.entries(limit=limit)


def test_acts_on_a_queue_that_is_gone_are_found_by_its_name_then(store: Store, busy: list[datetime]) -> None:
    ann = store.actions("ann")
    ann.rename_queue("jobs", "tasks")
    ann.push("tasks", b"later", priority=1)
    ann.delete_queue("tasks", confirm="tasks")
    assert verbs(store, named="tasks") == ["delete_queue", "push", "rename"]
    assert verbs(store, named="jobs", verb="push") == ["push", "push"]


def test_a_rare_act_is_looked_for_in_bounded_steps(
    store: Store, busy: list[datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MOST", 4)
    monkeypatch.setattr(paging, "STEP", 2)
    found, cursor, pages = [], None, 0
    while True:
        reads = []

        def look(tr, cursor=cursor, reads=reads):
            page = store.audit.entries(verb="create", after=cursor, tr=tr)
            reads.append(tr.reads)
            return page

        page = store.read(look)
        assert reads[-1] <= 8  # not the whole audit
        found += [entry.verb for entry in page.entries]
        cursor, pages = page.cursor, pages + 1
        if cursor is None:
            break
        assert page.looked == 4
    assert (found, pages) == (["create", "create"], 2)


def test_a_narrow_scope_is_searched_in_steps_as_long_as_those_of_a_filter(store: Store) -> None:
    ann = store.actions("ann")
    ann.create_queue("jobs")
    ann.create_queue("hidden")
    for n in range(30):
        ann.push("hidden", b"x", priority=n)

    def look(tr):
        page = store.audit.entries(limit=1, seen=lambda entry: entry if entry.queue == "jobs" else None, tr=tr)
        return tr.reads, page

    reads, page = store.read(look)
    assert ([entry.verb for entry in page.entries], page.looked, page.cursor) == (["create"], 32, None)
    assert reads <= 32 + 2, "a step of one entry would cost a range read for each"


def test_a_wide_scope_reads_no_more_than_the_page_and_what_follows(store: Store, ann: Actions) -> None:
    ann.create_queue("jobs")
    for n in range(30):
        ann.push("jobs", b"x", priority=n)

    def look(tr):
        page = store.audit.entries(limit=5, seen=lambda entry: entry, tr=tr)
        return tr.reads, page

    reads, page = store.read(look)
    assert (len(page.entries), page.looked, page.certain, page.cursor is None) == (5, 5, True, False)
    assert reads <= 5 + 1 + 1, "the page, one that follows, and the range of both"


@pytest.mark.parametrize("filters", [{}, {"verb": "push"}, {"actor": "ann"}, {"queue": "jobs"}])
def test_pages_leave_nothing_out_and_show_nothing_twice(store: Store, filters: dict[str, str]) -> None:
    ann, bob = store.actions("ann"), store.actions("bob")
    ann.create_queue("jobs")
    for n in range(9):
        (ann if n % 2 else bob).push("jobs", b"%d" % n, priority=n)
    whole = [entry.id for entry in store.audit.entries(limit=100, **filters).entries]
    for limit in (1, 2, 3, len(whole)):
        found, cursor = [], None
        while True:
            page = store.audit.entries(limit=limit, after=cursor, **filters)
            found += [entry.id for entry in page.entries]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == whole


def test_the_trash_is_looked_through_by_queue_person_and_act(store: Store) -> None:
    ann, bob = store.actions("ann"), store.actions("bob")
    for name in ("jobs", "mail"):
        ann.create_queue(name)
        store.queue(name).push_many([(b"%d" % n, n) for n in range(6)])
    ann.pop("jobs")
    bob.pop("mail")
    bob.pop_many("jobs", 2)
    ann.rename_queue("jobs", "tasks")
    ann.delete_item("tasks", store.queue("tasks").peek_min().id)

    def found(**filters: str) -> list[tuple[str, str]]:
        return [(entry.act, entry.by) for entry in store.trash.entries(**filters).entries]

    assert found(queue="tasks") == [("delete", "ann"), ("pop", "bob"), ("pop", "bob"), ("pop", "ann")]
    assert found(queue="jobs") == [("pop", "bob"), ("pop", "bob"), ("pop", "ann")]  # its name then
    assert found(by="bob", queue="mail") == [("pop", "bob")]
    assert found(act="delete") == [("delete", "ann")]
    assert found(queue="never") == found(by="carol") == []
    page = store.trash.entries(by="ann", limit=1)
    rest = store.trash.entries(by="ann", limit=5, after=page.cursor)
    assert [entry.act for entry in (*page.entries, *rest.entries)] == ["delete", "pop"]
    assert rest.cursor is None
