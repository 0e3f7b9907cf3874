"""One process of a store executes the requests of all: every verb does the same as without it."""

import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest

from queues import AsyncStore, PriorityQueue, Store, open_store
from queues.errors import (
    OutcomeUnknown,
    QueueFull,
    QueueNotFound,
    QueuePaused,
    QueueUnreadable,
    StaleLease,
    StoreUnavailable,
    ValueTooLarge,
)
from queues.kv.embedded.host import (
    HOST,
    ID_BYTES,
    MAGIC,
    MESSAGE,
    PROTOCOL,
    REPLY,
    HostRecord,
    address_of,
    answers_key,
    answers_record,
    decode,
    read_answers,
)
from queues.kv.embedded.host_client import Connection
from queues.kv.port import Ticket
from queues.operations.push import PushRequest, push_request
from tests import descriptors
from tests.conformance.reading.test_unreadable import damage_lease, damage_ready_key
from tests.queues.hosting.processes import begin, host_of, hosting, suspend
from tests.queues.hosting.sent import Sent
from tests.waiting import await_true


@pytest.fixture
def url(tmp_path: Any) -> str:
    """A store with a queue."""
    url = f"lmdb:{tmp_path / 'store'}"
    with open_store(url) as store:
        store.create_queue("jobs")
    return url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """The store, which another process hosts."""
    with hosting(url) as process, open_store(url) as store:
        assert host_of(url) == process.pid
        yield store
        assert host_of(url) == process.pid


@pytest.fixture
def jobs(store: Store) -> PriorityQueue:
    """Its queue."""
    queue = store.queue("jobs")
    assert isinstance(queue, PriorityQueue)
    return queue


def test_pushes_and_pops_answer_whole_items(jobs: PriorityQueue) -> None:
    pushed = [jobs.push(b"b", 2), jobs.push(b"a", 1), *jobs.push_many([(b"c", 3), (b"d", 1 << 100)])]
    assert [item.count for item in pushed] == sorted(item.count or 0 for item in pushed)
    assert jobs.peek_min() == pushed[1]
    popped = [jobs.pop_max(), jobs.pop_min(), *jobs.pop_many(5)]
    assert popped == [pushed[3], pushed[1], pushed[0], pushed[2]]
    assert (popped[0].priority, popped[0].raw, popped[0].state) == (1 << 100, b"d", "ready")
    assert popped[0].pushed_at == pushed[3].pushed_at
    assert jobs.pop_min() is None
    traffic = jobs.totals().traffic
    assert (traffic["push"], traffic["pop"]) == (4, 4)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("call", ["sendall", "recv"])
def test_a_request_that_a_signal_handler_interrupts_is_executed_once(
    jobs: PriorityQueue, monkeypatch: pytest.MonkeyPatch, call: str, interrupt: type[BaseException]
) -> None:
    def interrupted(connection: socket.socket, data: Any) -> None:
        monkeypatch.undo()
        if call == "sendall":  # the handler runs once the last byte is sent
            connection.sendall(data)
        raise interrupt

    jobs.push_many([(b"a", 1), (b"b", 2)])
    monkeypatch.setattr(socket.socket, call, interrupted)
    with pytest.raises(interrupt):
        jobs.pop_min()
    jobs.push(b"c", 3)  # by a new connection
    monkeypatch.setattr(socket.socket, call, interrupted)
    with pytest.raises(interrupt):
        jobs.push(b"d", 4)
    assert [item.raw for item in jobs.pop_many(9)] == [b"b", b"c", b"d"]


@pytest.mark.parametrize("silent", [True, False])
def test_an_interrupted_request_without_an_answer_raises_what_the_handler_raised(url: str, silent: bool) -> None:
    with hosting(url) as process, open_store(url) as store, pytest.MonkeyPatch.context() as patched:
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)

        def interrupted(connection: socket.socket, data: bytes) -> None:
            patched.undo()
            if silent:
                store.transact(lambda tr: suspend(process))
            else:
                process.kill()
                process.wait()
            raise TimeoutError("job took too long")

        patched.setattr(socket.socket, "sendall", interrupted)
        with pytest.raises(TimeoutError, match="job took too long"):
            jobs.push(b"b", 2)
        assert [item.raw for item in jobs.pop_many(9)] == [b"a"]


def test_an_interrupt_while_connecting_is_raised_and_leaves_the_host(
    store: Store, jobs: PriorityQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(connection: socket.socket, address: str) -> None:
        monkeypatch.undo()
        raise TimeoutError("job took too long")

    monkeypatch.setattr(socket.socket, "connect", interrupted)
    with pytest.raises(TimeoutError, match="job took too long"):
        jobs.push(b"a", 1)
    jobs.push(b"b", 1)
    assert [item.raw for item in jobs.pop_many(9)] == [b"b"]


def test_a_request_in_doubt_is_not_called_unwritten_when_its_store_is_closed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host that is silent may execute it later."""
    poll = select.poll

    class Polled:
        """Closes the store while a caller waits for its host."""

        def __init__(self) -> None:
            self.polled = poll()
            self.register = self.polled.register

        def poll(self, milliseconds: float) -> list[tuple[int, int]]:
            if silent:
                silent.pop().close()
            return self.polled.poll(milliseconds)

    silent: list[Store] = []
    monkeypatch.setattr(select, "poll", Polled)
    with hosting(url) as process, open_store(url) as store:
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)
        store.transact(lambda tr: suspend(process))
        silent.append(store)
        with pytest.raises(OutcomeUnknown):
            jobs.push(b"b", 2)
        process.send_signal(signal.SIGCONT)
        process.communicate()
    with open_store(url) as store:
        assert [item.raw for item in store.queue("jobs").pop_many(9)] == [b"a", b"b"]


def test_values_are_decoded_by_the_queue_s_codec(store: Store) -> None:
    mail = store.create_queue("mail", codec="json", priority_type="str")
    assert mail.push({"to": "ann"}, "high").value == {"to": "ann"}
    item = mail.pop_min()
    assert (item.value, item.priority) == ({"to": "ann"}, "high")
    lines = store.create_queue("lines", kind="fifo", codec="text")
    lines.enqueue_many(["one", "two"])
    assert [item.value for item in lines.dequeue_many(2)] == ["one", "two"]


def test_leases_are_acknowledged_extended_and_released(jobs: PriorityQueue) -> None:
    jobs.push_many([(b"a", 1), (b"b", 2), (b"c", 3)])
    first, second = jobs.lease_many(2, seconds=60, worker="me")
    assert (first.item.raw, first.item.worker, first.item.attempts) == (b"a", "me", 1)
    longer = jobs.extend(first, seconds=600)
    assert longer.expires_at - first.expires_at > timedelta(seconds=500)
    jobs.ack(longer)
    jobs.release(second, reason="not now")
    with pytest.raises(StaleLease):
        jobs.extend(first, seconds=60)
    again = jobs.lease(seconds=60)
    assert (again.item.raw, again.item.attempts) == (b"b", 2)
    assert [attempt.error for attempt in again.item.attempt_log] == ["not now"]
    with again:
        pass
    assert jobs.depth() == 1


def test_finished_items_tell_which_process_took_them(jobs: PriorityQueue) -> None:
    jobs.configure(keep_finished=60)
    jobs.push_many([(b"a", 1), (b"b", 2), (b"c", 3)])
    jobs.pop_min()
    jobs.ack_many(jobs.lease_many(2, seconds=60, worker="me"))
    told = {item.raw: (item.state, item.worker) for item in jobs.finished().items}
    me = f"{socket.gethostname()}:{os.getpid()}"
    assert told == {b"a": ("popped", me), b"b": ("acknowledged", "me"), b"c": ("acknowledged", "me")}


def test_refusals_say_what_they_say_without_a_host(store: Store, jobs: PriorityQueue) -> None:
    jobs.configure(max_depth=1)
    jobs.push(b"a", 1)
    with pytest.raises(QueueFull, match="jobs"):
        jobs.push(b"b", 1)
    jobs.configure(max_depth=None, max_value=3)
    with pytest.raises(ValueTooLarge):
        jobs.push(b"long", 1)
    jobs.pause(reason="lunch")
    with pytest.raises(QueuePaused, match="lunch") as paused:
        jobs.pop_min()
    assert paused.value.words.values["reason"] == "lunch"
    jobs.resume()
    store.actions("ann").delete_queue("jobs", confirm="jobs", reason="")
    with pytest.raises(QueueNotFound, match="jobs"):
        jobs.push(b"a", 1)


def test_what_cannot_be_read_is_told_as_without_a_host(store: Store, jobs: PriorityQueue) -> None:
    jobs.push_many([(b"a", 1), (b"b", 2)])
    lease = jobs.lease(seconds=60)
    damage_lease(store, jobs, lease, "no end")
    damage_ready_key(store, jobs, 0)
    ways = [lambda: jobs.ack(lease), lambda: jobs.release(lease), lambda: jobs.extend(lease, seconds=9), jobs.pop_min]
    for way in ways:
        with pytest.raises(QueueUnreadable, match="^The queue “jobs” cannot be read. Its bytes are damaged") as caught:
            way()
        assert caught.value.queue == "jobs"
        assert str(caught.value.why).startswith("Its bytes are damaged")


def test_a_transaction_sees_what_the_host_did(store: Store, jobs: PriorityQueue) -> None:
    jobs.push(b"a", 1)

    def swap(tr: Any) -> bytes:
        item = jobs.pop_min(tr=tr)
        jobs.push(b"b", 1, tr=tr)
        return item.raw

    assert store.transact(swap) == b"a"
    item = jobs.pop_min()
    assert item.raw == b"b"


def test_many_threads_get_each_item_once(jobs: PriorityQueue) -> None:
    with ThreadPoolExecutor(16) as threads:
        pushed = list(threads.map(lambda n: jobs.push(b"%d" % n, n % 5).id, range(200)))
        popped = list(threads.map(lambda _: jobs.pop_min(), range(220)))
    assert sorted(item.id for item in popped if item is not None) == sorted(pushed)


def test_coroutines_get_each_item_once(url: str, store: Store) -> None:
    async def work() -> tuple[list[str], list[str]]:
        async with AsyncStore(store) as own:
            jobs: Any = await own.queue("jobs")
            pushed = await asyncio.gather(*(jobs.push(b"%d" % n, n % 5) for n in range(100)))
            popped = await asyncio.gather(*(jobs.pop_min() for _ in range(100)))
            return [item.id for item in pushed], [item.id for item in popped]

    pushed, popped = asyncio.run(work())
    assert sorted(pushed) == sorted(popped)


def test_a_waiting_pop_gets_what_another_process_pushes(jobs: PriorityQueue, url: str) -> None:
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append(jobs.pop_min(wait=60)))
    waiting.start()
    jobs.push(b"a", 1)
    waiting.join()
    assert got[0].raw == b"a"


def test_a_suspended_host_is_replaced_and_does_nothing_afterwards(url: str) -> None:
    with hosting(url) as process, open_store(url) as store:
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)
        assert host_of(url) == process.pid
        store.transact(lambda tr: suspend(process))  # while it does not write
        jobs.push(b"b", 2)
        assert host_of(url) == os.getpid()
        process.send_signal(signal.SIGCONT)
        process.communicate()  # its own callers end well
        assert process.returncode == 0
        jobs.push(b"c", 3)
        assert [item.raw for item in jobs.pop_many(9)] == [b"a", b"b", b"c"]
        assert not store.context.kv.engine.sharing.doubted, "each commit looks for answers for good"


def test_a_replaced_host_that_does_not_look_executes_requests_twice(url: str) -> None:
    """What the record of the host is for."""
    with hosting(url, "a host commits after it was replaced") as process, open_store(url) as store:
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)
        store.transact(lambda tr: suspend(process))
        jobs.push(b"b", 2)
        process.send_signal(signal.SIGCONT)
        await_true(lambda: jobs.depth() == 3)
        process.communicate()
        assert [item.raw for item in jobs.pop_many(9)] == [b"a", b"b", b"b"]


def test_a_reply_in_a_socket_outlives_the_host_and_its_next_commits(url: str) -> None:
    with hosting(url) as process, open_store(url) as store:
        jobs: Any = store.queue("jobs")
        sent = Sent(store, jobs, push_request(jobs.opened, b"a", 1))
        jobs.push(b"b", 2)
        process.kill()
        process.wait()
        pushed = sent.answer()
        assert jobs.pop_min().id == pushed.id
        assert [item.raw for item in jobs.pop_many(9)] == [b"b"]


def test_a_caller_that_does_not_read_its_socket_executes_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reading it is for."""
    with hosting(url) as process, open_store(url) as store:
        jobs: Any = store.queue("jobs")
        sent = Sent(store, jobs, push_request(jobs.opened, b"a", 1))
        jobs.push(b"b", 2)
        process.kill()
        process.wait()
        monkeypatch.setattr(Connection, "rest", lambda connection: [])
        sent.answer()
        assert [item.raw for item in jobs.pop_many(9)] == [b"a", b"a", b"b"]


def test_a_late_host_may_answer_the_rest_between_two_tries(store: Store, jobs: Any, tmp_path: Path) -> None:
    wire, batch = store.context.wire, jobs.opened.batch(PushRequest)
    tickets = [Ticket(batch, push_request(jobs.opened, value, 1), None) for value in (b"a", b"b")]
    packed = []
    for value, ticket in zip((b"a", b"b"), tickets, strict=True):
        done = Ticket(batch, ticket.request, None)
        done.answer = jobs.push(value, 1)
        packed.append(wire.pack_answer(done))
    with socket.socket(socket.AF_UNIX) as listener:
        with address_of(tmp_path / "host-late") as address:
            listener.bind(address)
        listener.listen()
        connection = Connection(tmp_path, b"", HostRecord(PROTOCOL, "host-late"))
        connection.send(wire.root, b"", idle=False)

        def stored(*answers: bytes | None) -> Any:
            of_message = (connection.number, msgspec.msgpack.encode(answers))
            return {answers_key("host-late"): answers_record({connection.id: of_message})}

        connection.settle(stored(packed[0], None), 1, tickets[1])
        assert not tickets[1].answered
        connection.settle(stored(*packed), 1, tickets[1])
        assert tickets[1].answer.raw == b"b"
        connection.close()


def test_a_host_that_closes_the_store_leaves_it_to_the_next_process(url: str) -> None:
    with hosting(url) as process, open_store(url) as store:
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)
        process.communicate()
        jobs.push(b"b", 2)
        assert host_of(url) == os.getpid()
        assert [item.raw for item in jobs.pop_many(9)] == [b"a", b"b"]
    assert host_of(url) == 0


def test_a_killed_host_s_socket_is_in_the_way_of_no_process(url: str) -> None:
    with hosting(url) as process:
        process.kill()
        process.wait()
        with open_store(url) as store:
            jobs: Any = store.queue("jobs")
            jobs.push(b"a", 1)
            assert host_of(url) == os.getpid()


def test_a_path_that_is_too_long_for_a_socket_is_shared_all_the_same(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path / ('folder-' * 20)}"
    with open_store(url) as store:
        store.create_queue("jobs")
    with hosting(url), open_store(url) as store:
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)
        assert len(list(Path(url.removeprefix("lmdb:")).glob("host-*"))) == 1, "the other process is no longer the host"


def write_host_record(url: str, record: bytes) -> None:
    """Write what names the host of a store that no process has open."""
    with lmdb.open(url.removeprefix("lmdb:"), map_size=1 << 30) as file, file.begin(write=True) as txn:
        txn.put(HOST, record)


def test_a_newer_release_that_hosts_is_told_and_nothing_is_written(url: str) -> None:
    write_host_record(url, msgspec.msgpack.encode([PROTOCOL + 1, "host-of-another", "more"]))
    with socket.socket(socket.AF_UNIX) as listener, open_store(url) as store:
        with address_of(Path(url.removeprefix("lmdb:")) / "host-of-another") as address:
            listener.bind(address)
        listener.listen()
        jobs: Any = store.queue("jobs")
        with pytest.raises(StoreUnavailable, match="newer release"):
            jobs.push(b"a", 1)
        assert jobs.depth() == 0
        listener.close()  # it is gone: its record is in the way of no process
        jobs.push(b"a", 1)
        assert jobs.depth() == 1


def test_a_host_of_an_older_release_is_replaced(url: str) -> None:
    write_host_record(url, msgspec.msgpack.encode([PROTOCOL - 1, "host-of-another"]))
    with socket.socket(socket.AF_UNIX) as listener, open_store(url) as store:
        with address_of(Path(url.removeprefix("lmdb:")) / "host-of-another") as address:
            listener.bind(address)
        listener.listen()
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)
        assert host_of(url) == os.getpid()
        assert jobs.depth() == 1


def test_a_busy_host_hands_over_to_a_process_that_has_time(url: str) -> None:
    with hosting(url, "busy") as process, open_store(url) as store:
        jobs: Any = store.queue("jobs")
        rest = threading.Event()

        def push() -> None:
            jobs.push(b"a", 1)
            rest.wait(0.02)  # a process that pushes all the time has no time itself

        assert host_of(url) == process.pid
        await_true(lambda: host_of(url) == os.getpid(), meanwhile=push)
        pushed = jobs.totals().traffic["push"]
        assert len(jobs.pop_many(1_000)) == min(pushed, 1_000)


def test_a_takeover_that_fails_executes_nothing_twice(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hosting(url) as process, open_store(url) as store:
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)
        environment = store.context.kv.engine.environment
        record = environment.seal

        def fail(batch: Any) -> None:
            monkeypatch.setattr(environment, "seal", record)
            process.send_signal(signal.SIGCONT)
            raise lmdb.MapFullError("no room")

        store.transact(lambda tr: suspend(process))
        monkeypatch.setattr(environment, "seal", fail)
        with contextlib.suppress(OutcomeUnknown):
            jobs.push(b"once", 1)
        process.communicate()
        assert [item.raw for item in jobs.pop_many(9)].count(b"once") == 1


def test_a_commit_that_fails_leaves_no_answer_of_what_was_not_executed(url: str) -> None:
    with open_store(url) as store:
        jobs: Any = store.queue("jobs")
        jobs.push(b"own", 0)
        engine: Any = store.context.kv.engine
        wire, host, seal = store.context.wire, engine.election.host, engine.environment.seal
        requests = [push_request(jobs.opened, value, 1) for value in (b"one", b"two")]
        sent = wire.pack([Ticket(jobs.opened.batch(PushRequest), request, None) for request in requests])
        with socket.socket(socket.AF_UNIX) as other:
            with address_of(host.path) as address:
                other.connect(address)
            commits = []

            def fail(batch: Any) -> None:
                commits.append(batch)
                if len(commits) in (1, 3):  # that of both, and that of the second alone
                    raise lmdb.MapFullError("no room")
                seal(batch)

            engine.environment.seal = fail
            head = MESSAGE.pack(len(sent), 1, len(wire.root), False)
            other.sendall(MAGIC + b"i" * ID_BYTES + head + wire.root + sent)
            size, number = REPLY.unpack(other.recv(REPLY.size, socket.MSG_WAITALL))
            answers = decode(other.recv(size, socket.MSG_WAITALL))
            engine.environment.seal = seal
        stored = read_answers(engine.read_own(host.answers), b"i" * ID_BYTES, number)
        done = [item.raw for item in jobs.items(limit=9).items]
        assert done == [b"own", b"one"]
        assert [answer is not None for answer in stored] == [True, False]
        assert [answer is not None for answer in answers] == [True, False]


def test_a_host_record_that_cannot_be_read_is_replaced(url: str) -> None:
    write_host_record(url, b"\xc1")
    with open_store(url) as store:
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)
        assert host_of(url) == os.getpid()
        assert jobs.depth() == 1


def test_without_a_descriptor_left_each_process_executes_its_own_requests(url: str) -> None:
    with hosting(url), open_store(url) as store:
        jobs: Any = store.queue("jobs")
        with descriptors.none_left():
            jobs.push(b"a", 1)
        assert jobs.depth() == 1


def test_a_process_that_could_start_no_thread_hosts_later(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with open_store(url) as store:
        jobs: Any = store.queue("jobs")
        with monkeypatch.context() as machine:
            machine.setattr(threading.Thread, "start", refuse)
            jobs.push(b"a", 1)
        assert host_of(url) == 0
        await_true(lambda: host_of(url) == os.getpid(), meanwhile=lambda: jobs.push(b"b", 2))
        assert jobs.pop_min().raw == b"a"


class JobTimeout(Exception):
    """What a signal handler raises to end a job that takes too long."""


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, JobTimeout])
def test_an_interrupt_while_hosting_begins_reaches_the_caller_and_hosting_begins_later(
    url: str, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    started = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if thread.name == "pq-combining":
            raise interrupt
        started(thread)

    with open_store(url) as store:
        jobs: Any = store.queue("jobs")
        with monkeypatch.context() as machine:
            machine.setattr(threading.Thread, "start", interrupted)
            with pytest.raises(interrupt):
                jobs.push(b"a", 1)
        assert jobs.depth() == 1
        assert host_of(url) == 0
        await_true(lambda: host_of(url) == os.getpid(), meanwhile=lambda: jobs.push(b"b", 2))
        assert jobs.pop_min().raw == b"a"


def test_a_forked_child_leaves_its_parent_s_hosting_alone(url: str) -> None:
    with open_store(url) as store:
        jobs: Any = store.queue("jobs")
        jobs.push(b"a", 1)
        child = os.fork()
        if not child:
            with open_store(url) as own:
                queue: Any = own.queue("jobs")
                queue.push(b"b", 2)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert host_of(url) == os.getpid()
        assert [item.raw for item in jobs.pop_many(9)] == [b"a", b"b"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_user_without_the_right_to_write_cannot_connect(url: str) -> None:
    folder = Path(url.removeprefix("lmdb:"))
    with hosting(url):
        (path,) = folder.glob("host-*")
        assert path.stat().st_mode & 0o777 == 0o600
        for parent in (folder, *folder.parents[:3]):
            parent.chmod(parent.stat().st_mode | 0o011)
        code = "import os, socket, sys; os.setuid(65534); socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        refused = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
        assert "PermissionError" in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_users_of_a_group_share_a_store_also_after_one_of_them_was_killed(tmp_path: Path) -> None:
    folder, (one, other, group) = tmp_path / "store", ("20001", "20002", "20000")
    folder.mkdir()
    os.chown(folder, 0, int(group))
    folder.chmod(0o2770)
    for parent in folder.parents[:4]:
        parent.chmod(parent.stat().st_mode | 0o011)

    def answer(process: subprocess.Popen[str], line: str) -> str:
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    url = f"lmdb:{folder}"
    with contextlib.ExitStack() as processes:
        host = processes.enter_context(begin("member", url, one, group))
        assert answer(host, "push a") == "done"
        guest = processes.enter_context(begin("member", url, other, group))
        assert host_of(url) == host.pid
        assert [answer(guest, "push b"), answer(guest, "pop"), answer(host, "push c")] == ["done", "a", "done"]
        host.kill()
        assert [answer(guest, "pop"), answer(guest, "push d")] == ["b", "done"]
        assert host_of(url) == guest.pid
        guest.kill()
        guest.wait()
        again = processes.enter_context(begin("member", url, one, group))
        assert [answer(again, "pop") for _ in range(3)] == ["c", "d", "none"]
