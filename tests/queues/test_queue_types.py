"""Priority queues and FIFO queues are two types: a verb of the other kind does not type-check, and is refused."""

import re
import sys
from pathlib import Path

import pytest

from queues import FifoQueue, PriorityQueue, Store, open_store
from queues.aio.queue import for_coroutines
from queues.errors import QueueNotFound, WrongKind
from tests.programs import run_to_end

ROOT = Path(__file__).resolve().parents[2]
VERBS = {
    "jobs": [("enqueue", (b"x",)), ("enqueue_many", ([b"x"],)), ("dequeue", ()), ("dequeue_many", (1,)), ("peek", ())],
    "mail": [("push", (b"x", 1)), ("push_many", ([(b"x", 1)],)), ("pop_min", ()), ("pop_max", ()), ("pop_many", (1,))],
}
VERBS["mail"] += [("peek_min", ()), ("peek_max", ())]
PROGRAM = """
from queues import AsyncFifoQueue, AsyncPriorityQueue, AsyncStore, FifoQueue, open_store

store = open_store("memory:")
jobs = store.create_queue("jobs")
mail = store.create_queue("mail", kind="fifo")
jobs.pop_min(wait=True)
mail.dequeue(wait=5.0)
jobs.dequeue()  # E
jobs.enqueue(b"x")  # E
jobs.peek()  # E
mail.push(b"x", 5)  # E
mail.pop_max()  # E
mail.peek_min()  # E
store.priority_queue("jobs").push({"a": 1}, 5)
store.priority_queue("jobs").dequeue()  # E
store.fifo_queue("mail").pop_min()  # E
store.queue("jobs").push(b"x", 5)  # E
either = store.queue("jobs")
if isinstance(either, FifoQueue):
    either.dequeue()
else:
    either.pop_min()
either.lease()
jobs.lease_many(1)[0].item.value
jobs.lease().item  # E
jobs.pop_min(wait="5")  # E
jobs.pop_min(wait=None)  # E
jobs.push(b"x", priority=5, codec="json")  # E
store.create_queue("mail", codec="pickle")  # E


async def coroutines(opened: AsyncStore) -> None:
    jobs = await opened.create_queue("jobs")
    mail = await opened.create_queue("mail", kind="fifo")
    await jobs.pop_min(wait=True)
    await mail.dequeue(wait=5.0)
    await jobs.dequeue()  # E
    await jobs.peek()  # E
    await mail.push(b"x", 5)  # E
    await mail.peek_min()  # E
    await (await opened.priority_queue("jobs")).dequeue()  # E
    await (await opened.fifo_queue("mail")).pop_min()  # E
    await (await opened.queue("jobs")).push(b"x", 5)  # E
    either = await opened.attach("legacy", prefix=b"legacy")
    if isinstance(either, AsyncFifoQueue):
        await either.dequeue()
    else:
        await either.pop_min()
    await either.depth("ready")
    AsyncPriorityQueue(store.fifo_queue("mail"))  # E
    await opened.transact(lambda tr: jobs.sync.push(b"x", 5, tr=tr))
    await opened.transact(lambda tr: mail.sync.push(b"x", 5, tr=tr))  # E
"""


@pytest.fixture
def store() -> Store:
    store = open_store("memory:")
    store.create_queue("jobs")
    store.create_queue("mail", kind="fifo")
    return store


def test_the_kind_is_the_type(store: Store) -> None:
    for queue in (store.queue("jobs"), store.priority_queue("jobs"), store.rename_queue("jobs", "jobs")):
        assert type(queue) is PriorityQueue
    for queue in (store.queue("mail"), store.fifo_queue("mail"), store.queues()[1]):
        assert type(queue) is FifoQueue
    assert type(store.attach("legacy", prefix=b"x", kind="fifo")) is FifoQueue


def test_an_accessor_of_the_other_kind_refuses(store: Store) -> None:
    with pytest.raises(WrongKind, match="mail is a fifo queue"):
        store.priority_queue("mail")
    with pytest.raises(WrongKind, match="jobs is a priority queue"):
        store.fifo_queue("jobs")
    with pytest.raises(QueueNotFound, match="jobs"):
        store.priority_queue("jobz")


@pytest.mark.parametrize(("name", "verb", "arguments"), [(name, *verb) for name in VERBS for verb in VERBS[name]])
def test_a_verb_of_the_other_kind_is_refused(store: Store, name: str, verb: str, arguments: tuple[object, ...]) -> None:
    queue = store.queue(name)
    words = rf"{name} is a {queue.kind} queue: it has no \w+, use \w+\."
    for each in (queue, for_coroutines(queue)):
        with pytest.raises(WrongKind, match=words):
            getattr(each, verb)(*arguments)
        with pytest.raises(AttributeError):
            each.no_such_verb  # noqa: B018


def test_a_wrong_verb_does_not_type_check(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    checked = run_to_end(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", str(program)],
        cwd=ROOT,
    )
    found = {int(line) for line in re.findall(r"program\.py:(\d+): error", checked.stdout)}
    expected = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# E")}
    assert found == expected, checked.stdout + checked.stderr
