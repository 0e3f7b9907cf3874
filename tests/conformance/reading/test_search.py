"""Searching: bounded steps that together find exactly what fits, whatever comes and goes meanwhile."""

import enum
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from fdb import tuple as layer

from queues import Found, Item, Query, Queue, Store, open_store
from queues.errors import BadCursor, BadPriority, BadQueueKind, BadTime, BadValue, NotForAttached, TooLarge, WrongKind
from queues.model.codec import CodecName
from queues.model.ids import at
from tests.conftest import Clock, store_url

SECOND = timedelta(seconds=1)
STATES = ("ready", "delayed", "leased", "dead")


def walk(queue: Queue, query: Query, between: Callable[[], None] = lambda: None, **options: object) -> list[Item]:
    """Search to the end; every step keeps to its bounds and tells the truth about them."""
    found: list[Item] = []
    looked = 0
    after = None
    while True:
        step: Found = queue.search(query, after=after, **options)
        found += step.items
        looked += step.searched
        assert len(step.items) <= int(options.get("limit", 50))
        assert step.searched <= int(options.get("scan", 5_000))
        assert (step.searched_so_far, step.found_so_far) == (looked, len(found))
        assert step.ended == (step.cursor is None)
        if step.ended:
            return found
        assert step.cursor != after, "the search makes no progress"
        after = step.cursor
        between()


def everything(queue: Queue) -> dict[str, list[Item]]:
    """Return all items by state, in their order, by the plain pages."""
    found: dict[str, list[Item]] = {"ready": list(queue.items(limit=1000).items)}
    for state in STATES[1:]:
        found[state] = list(getattr(queue, state)(limit=1000).items)
    return found


@pytest.fixture
def mixed(store: Store, clock: Clock) -> Queue:
    """Items of every state, in two generations, pushed over some minutes."""
    dice = random.Random(7)
    mixed = store.create_queue("mixed")
    mixed.configure(max_attempts=1)

    def fill() -> None:
        for n in range(12):
            clock.advance(1.7)
            rows = [(b'{"n":%d,"k":"%s"}' % (dice.randrange(99), dice.choice((b"Abc", b"xyz"))), dice.randrange(9))]
            mixed.push_many(rows * 2 + [(*rows[0], timedelta(hours=n % 4 + 1))])
        for lease in mixed.lease_many(6, seconds=600 + dice.randrange(99), worker="w"):
            if dice.random() < 0.5:
                clock.advance(0.3)
                mixed.release(lease, reason="broken")

    fill()
    (trash_id,) = store.actions("ann").purge("mixed", confirm="mixed").trash_ids
    fill()
    store.actions("ann").undo(trash_id)
    assert len(store.queue("mixed").config.generations) == 2
    return mixed


def test_a_search_finds_exactly_what_a_plain_model_finds(mixed: Queue) -> None:
    dice = random.Random(3)
    all_items = everything(mixed)
    assert all(all_items[state] for state in STATES)
    times = [item.pushed_at for items in all_items.values() for item in items if item.pushed_at]
    ids = [item.id for items in all_items.values() for item in items]
    hits = 0
    for _ in range(150):
        bounds = sorted(dice.sample(times, 2))
        edges = sorted((dice.randrange(-1, 10), dice.randrange(-1, 10)))
        query = Query(
            state=dice.choice(STATES),
            text=(text := dice.choice(("", "", "ABC", '"n":1', "9", "nowhere"))),
            field=(field := dice.choice(("", "", "n")) if text else ""),
            exact=bool(field) and dice.random() < 0.5,
            item_id=dice.choice(("", "", "", dice.choice(ids), dice.choice(ids)[-3:])),
            low=dice.choice((None, edges[0])),
            high=dice.choice((None, edges[1])),
            since=dice.choice((None, None, bounds[0])),
            until=dice.choice((None, None, bounds[1])),
        )
        end = dice.choice(("min", "max"))
        found = walk(mixed, query, end=end, limit=dice.choice((1, 3, 50)), scan=dice.choice((1, 2, 7, 5_000)))
        model = [item for item in all_items[query.state] if query.matches(item)]
        assert sorted(item.id for item in found) == sorted(item.id for item in model), query
        assert {item.id: item for item in found} == {item.id: item for item in model}
        hits += len(found)
        if query.state == "ready" and query.since is None and query.until is None:
            assert found == (model if end == "min" else model[::-1])
        elif (query.since is not None or query.until is not None) and query.low is None and query.high is None:
            assert [item.id for item in found] == sorted((item.id for item in model), reverse=end == "max")
        assert Query.decode(query.encode()) == query
    assert hits > 200


DOCUMENTS = {
    "json": {"customer": {"id": 4711, "name": "Zoë Ødegård"}, "lines": [{"sku": "a-1"}, {"sku": "b-2"}], "ok": True},
    "other": {"customer": {"id": 47}, "id": "4711", "lines": [], "none": None, "a.b": 1},
}


@pytest.mark.parametrize(
    ("field", "text", "exact", "found"),
    [
        ("customer.id", "4711", True, ["json"]),
        ("customer.id", "47", True, ["other"]),
        ("customer.id", "47", False, ["json", "other"]),
        ("id", "4711", True, ["other"]),
        ("lines.sku", "b-2", True, ["json"]),
        ("lines.sku", "2", False, ["json"]),
        ("lines.1.sku", "b-2", True, ["json"]),
        ("lines.0.sku", "b-2", True, []),
        ("lines.9.sku", "b-2", True, []),
        ("customer.name", "zoë ø", False, ["json"]),
        ("customer.name", "Zoë", True, []),
        ("ok", "true", True, ["json"]),
        ("none", "null", True, ["other"]),
        ("customer", '{"id":47}', True, ["other"]),
        ("nowhere", "1", False, []),
        ("customer.id.more", "4711", False, []),
    ],
)
@pytest.mark.parametrize("codec", ["json", "msgpack", "bytes"])
def test_a_field_of_json_or_msgpack_is_looked_for(
    store: Store, codec: CodecName, field: str, text: str, exact: bool, found: list[str]
) -> None:
    jobs = store.create_queue("jobs", kind="fifo", codec=codec)
    names = {}
    for name, document in DOCUMENTS.items():
        raw = msgspec.json.encode(document) if codec == "bytes" else document
        names[jobs.enqueue(raw).id] = name
    jobs.enqueue(b"\xff\x00 customer id 4711" if codec == "bytes" else "customer.id 4711")
    items = jobs.search(Query(field=field, text=text, exact=exact)).items
    assert [names[item.id] for item in items] == found


def test_an_escaped_key_is_a_field_too(store: Store) -> None:
    jobs = store.create_queue("jobs", kind="fifo")
    jobs.enqueue(rb'{"customer\/id": "4711", "a\u0062c": "x"}')
    for field, text in (("customer/id", "4711"), ("abc", "x")):
        assert jobs.search(Query(field=field, text=text, exact=True)).items, field
    jobs.enqueue(b'{"deep": ' + b'{"a":' * 2_000 + b"1" + b"}" * 2_000 + b"}")
    assert not jobs.search(Query(field="deep", text="x")).items


def test_a_field_is_looked_for_in_what_the_searcher_sees(store: Store) -> None:
    jobs = store.create_queue("jobs", kind="fifo")
    jobs.enqueue(b'{"pin": "1234", "id": 1}')
    query = Query(field="pin", text="1234", exact=True)
    assert jobs.search(query).items
    assert not jobs.search(query, shown=lambda value: value.replace(b'"1234"', b'"[redacted]"')).items


def test_items_that_come_and_go_are_met_once_and_stop_nothing(store: Store, clock: Clock) -> None:
    dice = random.Random(11)
    jobs = store.create_queue("jobs")
    for _ in range(6):
        clock.advance(1)
        jobs.push_many([(b"item", dice.randrange(50)) for _ in range(10)])
    for query in (Query(text="item"), Query(text="item", since=at(0)), Query(low=10, high=40)):
        before = {item.id for item in jobs.items(limit=1000).items if query.matches(item)}
        gone: set[str] = set()

        def meddle(gone: set[str] = gone) -> None:
            clock.advance(0.01)
            jobs.push_many([(b"item", dice.randrange(50)) for _ in range(3)])
            gone.update(item.id for item in jobs.pop_many(2, end=dice.choice(("min", "max"))))

        found = [item.id for item in walk(jobs, query, meddle, limit=4, scan=6)]
        assert len(found) == len(set(found))
        assert before - gone <= set(found)


def test_a_lease_that_is_extended_is_found_once(jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"item", 0) for _ in range(20)])
    leases = jobs.lease_many(20, seconds=10)

    def extend() -> None:
        clock.advance(1)
        for lease in leases:
            jobs.extend(lease, seconds=60)

    assert len(walk(jobs, Query(state="leased", text="item"), extend, limit=3, scan=4)) == 20


def test_a_search_goes_on_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    url = store_url("embedded", tmp_path)
    with open_store(url, clock=clock) as store:
        store.create_queue("jobs").push_many([(b"%d" % n, n) for n in range(30)])
        first = store.queue("jobs").search(Query(text="1"), limit=4)
    with open_store(url, clock=clock) as store:
        rest = store.queue("jobs").search(Query(text="1"), after=first.cursor)
    assert [int(item.value) for item in first.items + rest.items] == [1, *range(10, 20), 21]
    assert (rest.searched_so_far, rest.found_so_far, rest.ended) == (30, 12, True)


def _reads(store: Store, look: Callable[[], Found]) -> tuple[int, Found]:
    before = store.context.kv.reads()
    found = look()
    return store.context.kv.reads() - before, found


def test_a_step_reads_no_more_than_it_must(store: Store, jobs: Queue, clock: Clock) -> None:
    some = jobs.push_many([(b"x" * 100, n % 10) for n in range(40)])
    by_id = _reads(store, lambda: jobs.search(Query(item_id=some[7].id)))
    for _ in range(3):
        clock.advance(60)
        jobs.push_many([(b"x" * 100, n % 10) for n in range(1000)])
    again = _reads(store, lambda: jobs.search(Query(item_id=some[7].id)))
    assert (by_id[0], by_id[1].items) == (again[0], again[1].items), "an id is looked up, not searched"
    assert [item.id for item in again[1].items] == [some[7].id]

    band = jobs.search(Query(low=3, high=3, text="nowhere"), scan=100_000)
    assert (band.searched, band.ended) == (304, True), "other priorities are not looked at"
    old = jobs.search(Query(until=some[0].pushed_at, text="nowhere"), scan=100_000)
    assert (old.searched, old.ended) == (40, True), "what is younger is not looked at"
    both = jobs.search(Query(until=some[0].pushed_at, low=3, text="nowhere"))
    assert both.searched == 40, "the narrower way is taken"
    reads, part = _reads(store, lambda: jobs.search(Query(text="nowhere"), scan=1_000))
    assert (part.searched, part.ended) == (1_000, False)
    assert reads <= 20
    for listing in (Query(), Query(low=3, high=5)):
        reads, page = _reads(store, lambda listing=listing: jobs.search(listing, limit=50))
        assert len(page.items) == 50
        assert reads <= 4


def test_a_step_ends_at_a_megabyte(jobs: Queue) -> None:
    for _ in range(3):
        jobs.push_many([(b"x" * 90_000, 1)] * 12)
    step = jobs.search(Query(text="nowhere"))
    assert 12 <= step.searched <= 24
    assert not step.ended
    assert len(walk(jobs, Query(text="x" * 500), limit=7)) == 36


def test_text_is_found_in_any_bytes_whatever_the_case(jobs: Queue) -> None:
    jobs.push_many([(b"\xff\x00HELLO\xfe", 1), ("Grüße".encode(), 2), (b"", 3)])
    assert [item.priority for item in jobs.search(Query(text="hello")).items] == [1]
    assert [item.priority for item in jobs.search(Query(text="gRüße")).items] == [2]
    assert [item.value for item in jobs.search(Query(text="ell"), preview=3).items] == [b"\xff\x00H"]


def test_what_the_searcher_may_not_see_is_not_found(jobs: Queue) -> None:
    jobs.push_many([(b"card 4111", 1), (b"other", 2)])

    def hide(value: bytes) -> bytes:
        return value.replace(b"4111", b"(hidden)")

    assert not jobs.search(Query(text="4111"), shown=hide).items
    assert not jobs.search(Query(text="hidden"), shown=hide).items, "marks are no part of the value"
    assert [item.value for item in jobs.search(Query(text="CARD"), shown=hide).items] == [b"card 4111"]


def test_the_reason_of_a_dead_item_is_looked_through_as_its_value_is(jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"one", 1), (b"two timeout", 2), (b"three", 3), (b"four", 4)])
    for lease, reason in zip(
        jobs.lease_many(3, seconds=60), ("Timeout of the Übersetzer", "", "no such card"), strict=True
    ):
        jobs.release(lease, reason=reason)
    assert [item.value for item in walk(jobs, Query(state="dead", text="tIMEOUT"), limit=1, scan=1)] == [
        b"one",
        b"two timeout",
    ]
    (found,) = jobs.search(Query(state="dead", text="Übersetzer")).items
    assert found.reason == "Timeout of the Übersetzer"
    assert not jobs.search(Query(state="ready", text="timeout")).items
    one = jobs.search(Query(state="dead", text="such CARD", item_id=jobs.dead().items[2].id)).items
    assert [item.value for item in one] == [b"three"]
    hidden = jobs.search(Query(state="dead", text="timeout"), shown=lambda value: b"").items
    assert [item.value for item in hidden] == [b"one"], "what is hidden of values is not found, reasons are told"


def test_a_job_on_dead_items_takes_those_that_the_search_finds_by_reason(store: Store, jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"%d" % n, n) for n in range(6)])
    for n, lease in enumerate(jobs.lease_many(6, seconds=60)):
        jobs.release(lease, reason="timeout" if n % 2 else "refused")
    acts = store.actions("ann")
    job = acts.begin_bulk("delete", "jobs", query=Query(state="dead", text="timeout"))
    acts.run_bulk(job.id)
    assert [item.reason for item in jobs.dead().items] == ["refused"] * 3


def test_attempts_of_ready_items_are_told(jobs: Queue) -> None:
    jobs.push_many([(b"a", 1), (b"b", 2)])
    jobs.release(jobs.lease())
    assert [item.attempts for item in jobs.search(Query()).items] == [1, 0]
    assert [item.attempts for item in jobs.search(Query(since=at(0))).items] == [1, 0]


def test_a_cursor_belongs_to_its_search(store: Store) -> None:
    jobs, others = store.create_queue("jobs"), store.create_queue("others")
    jobs.push_many([(b"x", n) for n in range(5)])
    cursor = jobs.search(Query(text="x"), limit=2).cursor
    assert cursor is not None
    for queue, query, options in (
        (others, Query(text="x"), {}),
        (jobs, Query(text="y"), {}),
        (jobs, Query(text="x"), {"end": "max"}),
    ):
        with pytest.raises(BadCursor):
            queue.search(query, after=cursor, **options)
    for damaged in (cursor[:-3], "", jobs.items(limit=1).cursor or "", "é" * 40):
        with pytest.raises(BadCursor):
            jobs.search(Query(text="x"), after=damaged)


def test_what_makes_no_sense_is_refused(store: Store) -> None:
    jobs, mail = store.create_queue("jobs"), store.create_queue("mail", kind="fifo")
    for query, error in (
        (Query(state="taken"), BadQueueKind),
        (Query(low="high"), BadPriority),
        (Query(since=datetime(2026, 1, 1)), BadTime),
        (Query(text="x" * 1001), TooLarge),
        (Query(text="x", exact=True), BadValue),
    ):
        with pytest.raises(error):
            jobs.search(query)
    with pytest.raises(WrongKind):
        mail.search(Query(low=1))
    for options in ({"scan": 0}, {"limit": 0}):
        with pytest.raises(TooLarge):
            jobs.search(Query(), **options)
    with pytest.raises(BadQueueKind):
        jobs.search(Query(), end="middle")
    assert jobs.search(Query(low=9, high=3)).ended


class Level(enum.IntEnum):
    HIGH = 1
    LOW = 5


class Plain(int):
    pass


class Name(enum.StrEnum):
    A = "a"


class Mixed(str, enum.Enum):  # noqa: UP042 # programs have such, and `str()` of one is another text
    A = "a"


@pytest.mark.parametrize(
    ("priority_type", "priority", "plain"),
    [("int", Level.HIGH, 1), ("int", Plain(1), 1), ("str", Name.A, "a"), ("str", Mixed.A, "a")],
)
def test_a_bound_of_a_subclass_is_the_number_or_text_that_it_is(
    store: Store, priority_type: str, priority: object, plain: object
) -> None:
    queue = store.create_queue("jobs", priority_type=priority_type)
    queue.push_many([(b"x", priority), (b"y", plain)])
    returned = queue.push(b"later", priority, delay=SECOND).priority
    assert (type(returned), returned) == (type(plain), plain)
    for query in (Query(low=priority), Query(high=priority), Query(low=priority, high=priority)):
        found = queue.search(query).items
        assert [(item.value, type(item.priority)) for item in found] == [(b"x", type(plain)), (b"y", type(plain))]


def test_a_fifo_queue_is_searched_from_head_to_tail(store: Store) -> None:
    mail = store.create_queue("mail", kind="fifo")
    mail.enqueue_many([b"m%d" % n for n in range(25)])
    assert [item.value for item in walk(mail, Query(text="M1"), limit=3, scan=4)] == [
        b"m%d" % n for n in (1, *range(10, 20))
    ]


def test_attached_queues_are_searched_in_the_order_of_their_keys(store: Store) -> None:
    legacy = store.attach("legacy", prefix=("legacy",), priority_type="float")
    prefix = layer.pack(("legacy",))
    rows = [(-0.0, 0), (0.0, 0), (1.5, 0), (2.5, 0), (3, 0), ("text", 0), (None, 0)]

    def write(tr: object) -> None:
        for priority, count in rows:
            tr.set(prefix + layer.pack((priority, count, b"r")), b"v %r" % (priority,))

    store.context.kv.transact(write)
    all_of_it = list(legacy.items(limit=100).items)
    assert walk(legacy, Query(), limit=3) == all_of_it
    for query in (Query(low=0), Query(low=0, high=2.5), Query(high=0), Query(text="V T"), Query(low=3)):
        expected = [item for item in all_of_it if legacy.query(query).matches(item)]
        assert walk(legacy, query, limit=2) == expected
    assert [item.priority for item in walk(legacy, Query(low=0))] == [-0.0, 0.0, 1.5, 2.5]
    assert [item.id for item in legacy.search(Query(item_id=all_of_it[4].id)).items] == [all_of_it[4].id]
    assert walk(legacy, Query(item_id=all_of_it[4].id[8:])) == [all_of_it[4]]
    for query in (Query(state="dead"), Query(until=at(0))):
        with pytest.raises(NotForAttached):
            legacy.search(query)


def test_an_age_of_the_far_past_or_future_is_no_trouble(jobs: Queue) -> None:
    jobs.push(b"x", priority=1)
    far = at(253_402_300_799_999)
    past = at(0) - 400 * 365 * 24 * 3600 * SECOND
    assert len(jobs.search(Query(since=past, until=far)).items) == 1
    assert not jobs.search(Query(since=far)).items
    assert not jobs.search(Query(until=past)).items


def test_leased_items_are_found_by_the_name_of_their_worker(jobs: Queue) -> None:
    jobs.push_many([(b"worker-1", 1), (b"x", 2), (b"y", 3)])
    for worker in ("other", "worker-1", "worker-12"):
        jobs.lease(seconds=60, worker=worker)
    assert [item.value for item in walk(jobs, Query(state="leased", worker="worker-1"))] == [b"x"]
    assert [item.worker for item in walk(jobs, Query(state="leased", text="worker-1"))] == ["other"]
    assert Query(state="leased", worker="worker-1").filters
