"""Codecs: values are encoded by a push and decoded by whatever reads the item; a value is never lost to its codec."""

import asyncio
from typing import Any

import pytest

from queues import AsyncPriorityQueue, Item, Queue, Raw, Store
from queues.errors import BadCodec, BadSetting, BadValue, QueueExists, Undecodable, ValueTooLarge
from queues.workers import Pool, Worker
from tests.others import PREFIX

VALUES = {"text": "größer", "json": {"to": "a@b", "n": [1, 2.5, None]}, "msgpack": {"blob": b"\x00", 1: [True]}}


@pytest.fixture(params=sorted(VALUES))
def codec(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def jobs(store: Store, codec: Any) -> Queue:
    return store.create_queue("jobs", codec=codec)


def test_every_read_decodes_the_value(store: Store, jobs: Queue, codec: str) -> None:
    value = VALUES[codec]
    pushed = jobs.push(value, 5)
    jobs.push_many([(value, 6), (value, 7)])
    later = jobs.push(value, 8, delay=60)
    items: list[Item | None] = [pushed, later, jobs.peek_min(), jobs.peek_max(), jobs.oldest(), jobs.find(pushed.id)]
    items += [
        jobs.find(later.id),
        *jobs.items().items,
        jobs.status().min,
        store.snapshot([jobs.id]).queues[jobs.id].max,
    ]
    lease = jobs.lease()
    items += [lease.item, jobs.find(lease.item.id), jobs.release(lease), jobs.promote_now(later.id)]
    items += [jobs.pop_min(), *jobs.pop_many(1), jobs.remove(later.id), store.transact(lambda tr: jobs.pop_max(tr=tr))]
    for item in items:
        assert item.value == value
        assert type(item.raw) is bytes
        assert item.size == len(item.raw)
    assert jobs.depth() == 0


def test_coroutines_encode_and_decode(jobs: Queue, codec: str) -> None:
    async def work() -> list[Any]:
        queue = AsyncPriorityQueue(jobs)
        await queue.push(VALUES[codec], 1)
        await queue.push_many([(VALUES[codec], 2)])
        lease = await queue.lease()
        return [lease.item.value, (await queue.pop_max()).value]

    assert asyncio.run(work()) == [VALUES[codec]] * 2


def test_a_fifo_queue_has_a_codec(store: Store) -> None:
    mail = store.create_queue("mail", kind="fifo", codec="json")
    mail.enqueue_many([{"n": 1}, {"n": 2}])
    assert mail.dequeue().value == {"n": 1}
    assert mail.peek().raw == b'{"n":2}'


def test_workers_get_decoded_values(store: Store) -> None:
    jobs, seen, worker = store.create_queue("jobs", codec="json"), [], Worker()
    jobs.push({"to": "a@b"}, 1)
    worker.handles("jobs")(lambda job: seen.append((job.item.value, job.lease.item.raw)))
    pool = Pool(store, worker, ["jobs"], once=True)
    pool.start()
    pool.wait()
    assert seen == [({"to": "a@b"}, b'{"to":"a@b"}')]


def test_bytes_are_the_default(store: Store) -> None:
    jobs = store.create_queue("jobs")
    assert jobs.codec == jobs.status().codec == "bytes"
    assert jobs.push(b"x", 1).value == jobs.pop_min().raw == b"x"
    with pytest.raises(BadValue):
        jobs.push({"to": "a@b"}, 1)


@pytest.mark.parametrize(
    ("codec", "wrong"),
    [
        ("text", b"x"),
        ("text", "\ud800"),
        ("json", object()),
        ("msgpack", 2**64),
        ("json", Raw(b"{")),
        ("text", Raw(b"\xff")),
    ],
)
def test_a_value_that_is_not_encoded_changes_nothing(store: Store, codec: Any, wrong: object) -> None:
    jobs, mail = store.create_queue("jobs", codec=codec), store.create_queue("mail", kind="fifo", codec=codec)
    for push in (
        lambda: jobs.push(wrong, 1),
        lambda: jobs.push_many([("good", 1), (wrong, 1)]),
        lambda: jobs.push(wrong, 1, delay=5),
        lambda: mail.enqueue(wrong),
        lambda: store.transact(lambda tr: jobs.push(wrong, 1, tr=tr)),
        lambda: asyncio.run(AsyncPriorityQueue(jobs).push(wrong, 1)),
    ):
        with pytest.raises(BadValue, match=rf"(jobs|mail) has the codec {codec}"):
            push()
    assert jobs.totals().traffic == mail.totals().traffic == {}
    with pytest.raises(ValueTooLarge):
        jobs.push("x" * 90_000 + "y", 1)


@pytest.mark.parametrize("value", [float("inf"), {"n": [1.5, float("nan")]}, {"none": None, "n": -float("inf")}])
def test_json_has_no_infinite_numbers(store: Store, value: object) -> None:
    jobs = store.create_queue("jobs", codec="json")
    with pytest.raises(BadValue, match="no infinite numbers"):
        jobs.push(value, 1)
    jobs.push({"none": None, "n": 1.5}, 1)
    assert [item.value for item in jobs.pop_many(9)] == [{"none": None, "n": 1.5}]


@pytest.mark.parametrize("form", ["list", "object"])
@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_values_are_nested_at_most_200_levels_deep(store: Store, jobs: Queue, codec: str, form: str) -> None:
    """Programs of every language parse such JSON."""
    value: Any = {} if form == "object" else []
    for _ in range(199):
        value = {"a": value} if form == "object" else [value]
    item = jobs.push(value, 1)
    assert jobs.push(Raw(item.raw), 1).value == value
    jobs.push(["[{" * 500, *[[]] * 500], 1)  # many, but not deep
    deeper = b"[%s]" % item.raw if codec == "json" else b"\x91" + item.raw
    deepest = b"[" * 40_000 + b"]" * 40_000 if codec == "json" else b"\x91" * 80_000 + b"\x90"
    for wrong in ([value], Raw(deeper), Raw(deepest)):
        with pytest.raises(BadValue, match="jobs: .*at most 200 levels"):
            jobs.push_many([("good", 1), (wrong, 1)])
    with pytest.raises(BadValue, match="200 levels"):
        store.actions("ann").edit_item("jobs", item.id, deeper, expect=item.raw)
    assert jobs.depth() == 3


def test_bytes_that_do_not_decode_are_told_so(store: Store) -> None:
    with pytest.raises(BadValue, match="cannot decode this value: JSON is malformed"):
        store.create_queue("jobs", codec="json").push(Raw(b"[1 2]"), 1)


def test_an_item_that_does_not_decode_is_taken_with_its_bytes(store: Store) -> None:
    """Items come from other queues by moves."""
    old, jobs = store.create_queue("old"), store.create_queue("jobs", codec="json")
    ids = [old.push(b"{not json", n).id for n in range(4)]
    store.actions("ann").move_items("old", ids, to="jobs")
    popped, lease = jobs.pop_min(), jobs.lease()
    looked, waited = jobs.peek_min(), asyncio.run(AsyncPriorityQueue(jobs).pop_min())
    for item in (popped, lease.item, looked, waited):
        assert item.raw == b"{not json"
        with pytest.raises(Undecodable, match="jobs has the codec json"):
            _ = item.value
    jobs.ack(lease)
    assert jobs.depth() == 1


def test_a_value_that_was_cut_does_not_decode(store: Store) -> None:
    jobs = store.create_queue("jobs", codec="json")
    jobs.push("x" * 400, 1)
    (cut,) = jobs.items(preview=10).items
    with pytest.raises(Undecodable, match="beginning"):
        _ = cut.value
    assert len(cut.raw) == 10


def test_raw_values_are_stored_as_they_are(store: Store) -> None:
    jobs = store.create_queue("jobs", codec="json")
    assert jobs.push(Raw(b' {"a" : 1}'), 1).raw == b' {"a" : 1}'
    assert jobs.pop_min().value == {"a": 1}


def test_people_push_and_edit_bytes_that_decode(store: Store) -> None:
    jobs, acts = store.create_queue("jobs", codec="json"), store.actions("ann")
    item = acts.push("jobs", b'{"n": 1}', priority=1)
    assert jobs.peek_min().value == {"n": 1}
    acts.edit_item("jobs", item.id, b'{"n": 2}', expect=b'{"n": 1}')
    for refused in (
        lambda: acts.push("jobs", b"{n", priority=1),
        lambda: acts.edit_item("jobs", item.id, b"{n", expect=b'{"n": 2}'),
        lambda: acts.begin_push("jobs", [(b"{n", 1)]),
    ):
        with pytest.raises(BadValue, match="codec json"):
            refused()
    assert jobs.pop_min().value == {"n": 2}
    assert jobs.depth() == 0


def test_what_comes_from_the_trash_is_decoded(store: Store) -> None:
    jobs, acts = store.create_queue("jobs", codec="json"), store.actions("ann")
    jobs.push([1], 1)
    popped = acts.pop("jobs")
    assert popped.item.value == [1]
    assert store.restore(popped.trash_id).value == [1]
    store.restore(store.delete_queue("jobs"))
    assert store.queue("jobs").codec == "json"
    assert store.queue("jobs").pop_min().value == [1]


def test_a_codec_never_changes(store: Store) -> None:
    jobs = store.create_queue("jobs", codec="json")
    assert store.create_queue("jobs", codec="json", exist_ok=True).id == jobs.id
    with pytest.raises(QueueExists, match="json"):
        store.create_queue("jobs", exist_ok=True)
    with pytest.raises(BadSetting):
        jobs.configure(codec="text")
    store.rename_queue("jobs", "tasks")
    assert store.queue("tasks").codec == "json"


@pytest.mark.parametrize("codec", ["pickle", "", None, 5])
def test_an_unknown_codec_is_refused(store: Store, codec: Any) -> None:
    with pytest.raises(BadCodec, match="bytes, text, json or msgpack"):
        store.create_queue("jobs", codec=codec)
    with pytest.raises(BadCodec):
        store.attach("legacy", prefix=b"x", codec=codec)
    assert store.queues() == []


def test_an_attached_queue_has_the_codec_it_was_attached_with(store: Store) -> None:
    legacy = store.attach("legacy", prefix=PREFIX, codec="json")
    legacy.push({"a": 1}, 1)
    assert legacy.peek_min().value == {"a": 1}
    assert legacy.pop_min().raw == b'{"a":1}'
    store.detach("legacy")
    assert store.attach("legacy", prefix=PREFIX).codec == "bytes"
