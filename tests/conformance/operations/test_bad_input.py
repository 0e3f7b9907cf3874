"""Bad input: a clear error, nothing changed."""

import math
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from queues import Queue, Store
from queues.errors import (
    BadCursor,
    BadLimit,
    BadName,
    BadPriority,
    BadQueueKind,
    BadText,
    BadTime,
    BadValue,
    TooLarge,
    ValueTooLarge,
)
from queues.items.scan import Query
from queues.workers import Pool, Worker

BAD_NAMES = [
    *("", "a/b", "a b", "a\x00", "a\n", "a\\b", "a%2fb", "<b>", ".", "..", "😀"),
    *("\u202eevil", "a\u200b", "\u0301a", "\ud800", "x" * 201, "x" * 10_000, "é" * 151),
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_outside_the_rule_are_refused(store: Store, name: str) -> None:
    with pytest.raises(BadName) as caught:
        store.create_queue(name)
    assert len(str(caught.value)) < 200
    store.create_queue("there")
    with pytest.raises(BadName):
        store.rename_queue("there", name)
    assert list(store.directory()) == ["there"]


@pytest.mark.parametrize("name", ["a", "A.b_c:d-e", "заказы", "日本語", "कतार", "x" * 200, "...", "٣"])
def test_names_of_any_script_are_welcome(store: Store, name: str) -> None:
    assert store.create_queue(name).name == name
    assert store.queue(name).name == name


def test_names_are_kept_in_one_spelling(store: Store) -> None:
    store.create_queue(unicodedata.normalize("NFD", "café"))
    assert store.queue("café").name == "café"
    assert store.queue(unicodedata.normalize("NFD", "café")).name == "café"
    assert [queue.name for queue in store.queues(unicodedata.normalize("NFD", "café"))] == ["café"]
    store.rename_queue(unicodedata.normalize("NFD", "café"), "tea")
    assert list(store.directory()) == ["tea"]


@pytest.mark.parametrize(
    ("priority_type", "priority"),
    [
        ("int", "5"),
        ("int", 5.0),
        ("int", True),
        ("int", None),
        ("int", 10**999),
        ("int", -(10**999)),
        ("int", math.nan),
        ("float", math.nan),
        ("float", math.inf),
        ("float", float("1e400")),
        ("float", -math.inf),
        ("float", False),
        ("float", 2**53 + 1),
        ("float", 10**999),
        ("float", "1"),
        ("str", 5),
        ("str", b"a"),
        ("str", "\ud800"),
        ("str", "x" * 201),
        ("str", "é" * 101),
        ("str", None),
    ],
)
def test_priorities_of_the_wrong_type_are_refused(store: Store, priority_type: str, priority: object) -> None:
    jobs = store.create_queue("jobs", priority_type=priority_type)
    before = jobs.status()
    with pytest.raises(BadPriority) as caught:
        jobs.push(b"x", priority=priority)
    assert len(str(caught.value)) < 200
    with pytest.raises(BadPriority):
        jobs.items(priority=priority) if priority is not None else jobs.push_many(
            [(b"good", priority), (b"", priority)]
        )
    assert jobs.status() == before


@pytest.mark.parametrize(
    ("bad", "refusal"),
    [
        ((b"bad", 1.5), BadPriority),
        (("bad", 1), BadValue),
        ((bytes(90_001), 1), ValueTooLarge),
        ((b"of the queue", 1), ValueTooLarge),
        ((b"bad", 1, "soon"), BadTime),
        ((b"bad", 1, timedelta.max), BadTime),
        ((b"bad", 1, datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)), BadTime),
        ((b"bad",), BadValue),
        (b"bad", BadValue),
        ("ba", BadValue),
        (5, BadValue),
    ],
)
def test_one_bad_item_stops_all_of_them_and_its_place_is_told(jobs: Queue, bad: Any, refusal: type[Exception]) -> None:
    jobs.configure(max_value=8)
    with pytest.raises(refusal) as caught:
        jobs.push_many([(b"good", 1), (b"good", 1), bad, (b"good", 1)])
    assert caught.value.index == 2
    with pytest.raises(BadTime) as of_all:
        jobs.push_many([(b"good", 1)] * 2, delay=timedelta.max)
    assert of_all.value.index is None
    assert (jobs.depth(), jobs.depth("delayed")) == (0, 0)


def test_a_value_is_bytes(jobs: Queue) -> None:
    for value in ("text", 5, None, [b"x"]):
        with pytest.raises(TypeError, match="bytes"):
            jobs.push(value, priority=1)
    with pytest.raises(ValueTooLarge, match="90,000 bytes; this one has 90,001"):
        jobs.push(bytes(90_001), priority=1)
    assert jobs.depth() == 0

    class Subclass(bytes):
        pass

    for value in (bytearray(b"x"), memoryview(b"x"), Subclass(b"x")):
        assert type(jobs.push(value, priority=1).value) is bytes
        assert jobs.push_many([(value, 1), (b"x", 1)])[0].value == b"x"
    assert {item.value for item in jobs.pop_many(9)} == {b"x"}


def test_kinds_types_ends_and_states_are_checked(store: Store) -> None:
    for arguments in ({"kind": "lifo"}, {"priority_type": "date"}, {"kind": ""}):
        with pytest.raises(BadQueueKind):
            store.create_queue("jobs", **arguments)
    jobs = store.create_queue("jobs")
    with pytest.raises(BadQueueKind, match="min and max"):
        jobs.pop_many(1, end="middle")
    with pytest.raises(BadQueueKind):
        jobs.depth("gone")


def test_bands_increase_and_are_few(store: Store) -> None:
    for bands in ([2, 1], [1, 1], list(range(16)), [1.5]):
        with pytest.raises(BadPriority):
            store.create_queue("jobs", bands=bands)
    assert store.create_queue("jobs", bands=[]).status().bands[0].label == "all"


def test_cursors_are_of_this_queue_and_end(store: Store) -> None:
    jobs, other = store.create_queue("jobs"), store.create_queue("other")
    for queue in (jobs, other):
        queue.push_many([(b"%d" % n, n) for n in range(5)])
    cursor = jobs.items(limit=2).cursor
    with pytest.raises(BadCursor, match="another queue"):
        other.items(after=cursor)
    with pytest.raises(BadCursor, match="other end"):
        jobs.items(end="max", after=cursor)
    middle = len(cursor) // 2
    swapped = "A" if cursor[middle] != "A" else "B"
    for damaged in (
        "",
        "x",
        "%%%",
        cursor[:-3],
        cursor + "AAAA",
        "é",
        "A" * 5000,
        cursor[:middle] + swapped + cursor[middle + 1 :],
    ):
        with pytest.raises(BadCursor, match="damaged"):
            jobs.items(after=damaged)
    for limit in (0, -1, 1001):
        with pytest.raises(TooLarge):
            jobs.items(limit=limit)


def test_an_id_that_is_none_finds_nothing(jobs: Queue) -> None:
    for item_id in ("", "zz", "0" * 40, "é" * 40, "0" * 39, "0" * 10_000):
        assert jobs.find(item_id) is None


def test_half_a_character_is_refused_in_every_reason_and_name_of_a_person(store: Store) -> None:
    """Pages, live frames and files are UTF-8: what cannot be written as such is not taken in."""
    half = "because \ud800"
    queue = store.create_queue("jobs")
    item = queue.push(b"x", priority=1)
    lease = queue.lease(seconds=60)
    acts = store.actions("ann")
    refused: list[Callable[[], object]] = [
        lambda: queue.pause(reason=half),
        lambda: queue.pause(reason="", by=half),
        lambda: queue.release(lease, reason=half),
        lambda: store.actions(half),
        lambda: acts.pause("jobs", reason=half),
        lambda: acts.delete_queue("jobs", confirm="jobs", reason=half),
        lambda: acts.release("jobs", [item.id], reason=half),
        lambda: acts.begin_bulk("delete", "jobs", query=Query(), reason=half),
        lambda: acts.begin_push("jobs", [(b"y", 1)], reason=half),
    ]
    for act in refused:
        with pytest.raises(BadText, match=r"U\+D800"):
            act()
    assert [job.id for job in acts.jobs()] == []
    assert queue.status().pause is None
    assert queue.depth("leased") == 1
    assert [entry.verb for entry in store.audit.entries().entries] == []


@pytest.mark.parametrize("wrong", [None, 5, b"jobs", ["jobs"]])
def test_what_is_no_text_is_refused_as_a_name_and_as_an_id(store: Store, jobs: Queue, wrong: object) -> None:
    name_takers = (store.queue, store.delete_queue, lambda name: store.rename_queue(name, "other"), store.create_queue)
    for take in name_takers:
        with pytest.raises(BadName, match="name is text, not"):
            take(wrong)
    id_takers = (jobs.find, jobs.find_finished, jobs.remove, jobs.retry_dead, jobs.delete_dead, jobs.promote_now)
    for take in (*id_takers, store.restore, lambda item_id: jobs.reschedule(item_id, delay=1)):
        with pytest.raises(BadValue, match="An id is text, not"):
            take(wrong)
    for take in (lambda text: jobs.pause(reason=text), lambda text: jobs.pause(reason="r", by=text)):
        with pytest.raises(BadValue, match="is text, not"):
            take(wrong)
    assert jobs.pause_state is None


@pytest.mark.parametrize("preview", [-1, 1.5, "x", True])
def test_a_preview_is_a_number_of_bytes(jobs: Queue, preview: object) -> None:
    jobs.push(b"value", priority=1)
    for look in (jobs.items, jobs.delayed, jobs.leased, jobs.dead, jobs.status):
        with pytest.raises(BadLimit, match="preview"):
            look(preview=preview)
    with pytest.raises(BadLimit, match="preview"):
        jobs.search(Query(state="ready"), preview=preview)


def test_times_and_queries_have_their_types(jobs: Queue) -> None:
    for wrong in ("2030-01-01", 5, timedelta(1)):
        with pytest.raises(BadTime, match="is a datetime, not"):
            jobs.dead(since=wrong)
        with pytest.raises(BadTime, match="is a datetime, not"):
            jobs.pause(reason="r", until=wrong)
        with pytest.raises(BadTime, match="is a datetime, not"):
            jobs.search(Query(since=wrong))
        with pytest.raises(BadValue, match="is for a Query, not"):
            jobs.search(wrong)
    with pytest.raises(BadValue, match="is text, not bytes"):
        jobs.search(Query(text=b"x"))


def test_a_transaction_that_only_reads_is_no_place_to_write(store: Store, jobs: Queue) -> None:
    for write in (lambda tr: jobs.push(b"x", priority=1, tr=tr), lambda tr: jobs.pop_min(tr=tr)):
        with pytest.raises(BadValue, match="transaction that writes"):
            store.read(write)


@pytest.mark.parametrize("name", ["\ud800", "a\x00", "a\nb", "a\u2028b", "\x1b[2J", "a\x85"])
def test_what_is_no_line_of_text_is_refused_as_the_name_of_a_worker(store: Store, jobs: Queue, name: str) -> None:
    jobs.push(b"x", priority=1)
    with pytest.raises(BadText, match=r"U\+"):
        jobs.lease(worker=name)
    with pytest.raises(BadText):
        Pool(store, Worker(), ["jobs"], name=name)
    assert jobs.depth("leased") == 0
