"""Idempotency keys, on each engine: a request that was executed returns its first answer."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from queues import Actions, Answer, Popped, Queue, RequestKey, Store, Transaction, open_store
from queues.errors import AlreadyDone, BadKey, BadValue, KeyReused, QueueFull, QueueNotFound
from tests.conftest import Clock, store_url
from tests.others import PREFIX, Others
from tests.step_by_step import CONCURRENT, begin, on_concurrent_engines

HOUR = 3600
ROOT = Path(__file__).parents[3]


def push_once(store: Store, key: str, value: bytes = b"value") -> Answer:
    def push(tr: Transaction) -> bytes:
        return store.queue("jobs", tr=tr).push(value, priority=1, tr=tr).id.encode()

    return store.once(key, push, content=value)


def test_a_repeated_request_does_nothing_and_returns_the_first_answer(store: Store, jobs: Queue, clock: Clock) -> None:
    first = push_once(store, "key")
    clock.advance(60)
    again = push_once(store, "key")
    assert (first.repeated, again.repeated) == (False, True)
    assert (again.value, again.at) == (first.value, first.at)
    assert jobs.depth() == 1
    assert store.first_answer("key") == again


def test_other_keys_are_other_requests(store: Store, jobs: Queue) -> None:
    long = "v" * 1_000
    digest = sha256(long.encode()).hexdigest()
    answers = {push_once(store, key).value for key in ("a", "a\0", "a\0b", "b", "ab", "ü" * 1_000, long, digest)}
    assert len(answers) == jobs.depth() == 8
    assert store.first_answer("c") is None


def test_another_request_under_a_used_key_is_refused(store: Store, jobs: Queue) -> None:
    push_once(store, "key", b"one")
    with pytest.raises(KeyReused, match="nothing was done"):
        push_once(store, "key", b"two")
    assert jobs.depth() == 1


def test_a_refused_request_leaves_its_key_unused(store: Store, jobs: Queue) -> None:
    jobs.configure(max_depth=1)
    jobs.push(b"first", priority=1)
    with pytest.raises(QueueFull):
        push_once(store, "key")
    jobs.pop_min()
    assert not push_once(store, "key", b"corrected").repeated
    assert [item.value for item in jobs.items().items] == [b"corrected"]


@pytest.mark.parametrize("size", [0, 1, 89_999, 90_000, 90_001, 500_000])
def test_an_answer_of_any_size_is_kept(store: Store, size: int) -> None:
    answer = bytes(n % 251 for n in range(size))
    store.once("key", lambda tr: answer)
    assert store.once("key", lambda tr: b"another").value == answer


@pytest.mark.parametrize("key", ["", "k" * 1_001, 7, b"key"])
def test_what_is_no_key_is_refused(store: Store, key: str) -> None:
    with pytest.raises(BadKey):
        store.once(key, lambda tr: b"")


def test_contents_and_answers_are_bytes(store: Store, jobs: Queue) -> None:
    for answer in ("text", None, bytearray(b"x")):
        with pytest.raises(BadValue, match="An answer is bytes, not"):
            store.once("key", lambda tr, answer=answer: (jobs.push(b"x", priority=1, tr=tr), answer)[1])
    for content in ("text", None):
        with pytest.raises(BadValue, match="content of a request is bytes, not"):
            store.once("key", lambda tr: b"x", content=content)
    with pytest.raises(BadValue, match="content"):
        store.first_answer("key", content="text")
    assert (jobs.depth(), store.first_answer("key")) == (0, None)


def test_answers_are_kept_for_a_day(store: Store, jobs: Queue, clock: Clock) -> None:
    push_once(store, "small")
    store.once("large", lambda tr: b"." * 200_000)
    clock.advance(23 * HOUR)
    push_once(store, "young")
    clock.advance(HOUR)
    assert store.sweep().answers == 0
    assert push_once(store, "small").repeated
    clock.advance(1)
    assert store.sweep().answers == 2
    assert store.first_answer("large") is None
    assert push_once(store, "young").repeated
    assert not push_once(store, "small").repeated


def test_concurrent_requests_with_one_key_are_executed_once(store: Store, jobs: Queue) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: push_once(store, f"{n % 10}"), range(80)))
    assert jobs.depth() == 10
    assert len({answer.value for answer in answers}) == 10
    assert sum(not answer.repeated for answer in answers) == 10


_PROCESS = """
import sys
from queues import open_store

with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(40):
        push = lambda tr: store.queue("jobs", tr=tr).push(b"value", priority=1, tr=tr).id.encode()
        print(store.once(f"{n}", push).value.decode(), flush=True)
"""


@pytest.mark.parametrize("kind", ["embedded", "cluster"])
def test_processes_with_the_same_keys_get_the_same_answers(kind: str, tmp_path: Path) -> None:
    if kind == "cluster" and "cluster" not in CONCURRENT:
        pytest.skip("There is no FoundationDB to test on.")
    url = store_url(kind, tmp_path)
    with open_store(url) as store:
        store.create_queue("jobs")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROCESS, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [len(each) for each in answers] == [40] * 3
    assert answers[0] == answers[1] == answers[2]
    with open_store(url) as store:
        assert store.queue("jobs").depth() == 40


@on_concurrent_engines
def test_the_second_of_two_transactions_with_one_key_conflicts(store: Store) -> None:
    from queues.operations.idempotency import once

    first, second = begin(store), begin(store)
    for tr in (first, second):
        once(tr, store.context.keyspace, "key", lambda: b"", now_ms=0)
    second.commit()
    first.refused()


def test_an_action_of_a_person_takes_part(store: Store, jobs: Queue) -> None:
    jobs.push(b"value", priority=1)

    def pop(tr: Transaction) -> bytes:
        popped = store.actions("ann", tr=tr).pop("jobs")
        return b"" if popped is None else str(popped.trash_id).encode()

    first = store.once("key", pop)
    assert store.once("key", pop).value == first.value
    assert [entry.id for entry in store.trash.entries().entries] == [first.value.decode()]
    assert [entry.verb for entry in store.audit.entries().entries] == ["pop_min"]


def answer_of(result: object) -> bytes:
    return result.item.id.encode() if isinstance(result, Popped) else b"done"


def keyed(store: Store, key: str = "key", content: bytes = b"") -> Actions:
    return store.actions("ann", key=RequestKey(key=key, content=content, answer=answer_of))


def test_an_action_with_a_key_is_done_once(store: Store, jobs: Queue, clock: Clock) -> None:
    jobs.push_many([(b"%d" % n, n) for n in range(3)])
    popped, at = keyed(store).pop("jobs"), store.now()
    clock.advance(60)
    with pytest.raises(AlreadyDone) as done:
        keyed(store).pop("jobs")
    assert (done.value.answer, done.value.at) == (answer_of(popped), at)
    with pytest.raises(KeyReused):
        keyed(store, content=b"other").pop("jobs")
    assert jobs.depth() == 2
    assert len(store.audit.entries().entries) == 1


def test_a_request_is_known_by_its_first_action(store: Store, jobs: Queue) -> None:
    ann = keyed(store)
    with pytest.raises(QueueNotFound):
        ann.pause("nothing", reason="why")
    ann.pause("jobs", reason="why")
    ann.resume("jobs")
    with pytest.raises(AlreadyDone):
        keyed(store).pause("jobs", reason="why")
    assert jobs.status().pause is None


def test_a_push_job_with_a_key_begins_once(store: Store, jobs: Queue) -> None:
    items = [(b"%d" % n, n) for n in range(5)]
    begun = keyed(store).begin_push("jobs", items)
    with pytest.raises(AlreadyDone):
        keyed(store).begin_push("jobs", items)
    jobs.configure(max_depth=1)
    with pytest.raises(AlreadyDone):
        keyed(store).begin_push("jobs", items)
    assert [job.id for job in store.actions("ann").jobs()] == [begun.id]
    jobs.configure(max_depth=None)
    assert store.actions("ann").run_bulk(begun.id).done == 5


def test_a_purge_with_a_key_empties_an_attached_queue_once(store: Store) -> None:
    others = Others(store)
    others.push(*[(n, b"%d" % n) for n in range(60)])
    store.attach("legacy", prefix=PREFIX)
    assert keyed(store).purge_attached("legacy", confirm="legacy", expect_depth=60).count == 60
    with pytest.raises(AlreadyDone):
        keyed(store).purge_attached("legacy", confirm="legacy", expect_depth=60)
    others.push((1, b"new"))
    with pytest.raises(AlreadyDone):
        keyed(store).purge("legacy", confirm="legacy")
    assert others.depth() == 1
