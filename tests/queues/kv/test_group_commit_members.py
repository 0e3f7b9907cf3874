"""Requests that wait together are served together, where transactions may conflict: the members of batches."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from queues.kv import group_commit
from queues.kv.bells import Bell
from queues.kv.errors import OutcomeUnknown, StoreClosed, StoreUnavailable
from queues.kv.port import Refused, Ticket, Transact, Transaction
from queues.kv.simulated import Fault, SimulatedStore
from tests.queues.kv.tickets import submitted

#: Seconds after which a test gives up; no test depends on how soon something happens.
LONG = 120
SLOTS = b"\x01slots"


class Doubt:
    """What tells an engine of a request with an outcome that is not known."""

    def give_up(self, ticket: Ticket) -> None:
        ticket.error, ticket.answered, ticket.doubt = OutcomeUnknown("It may be executed later."), True, None


def test_a_request_in_doubt_is_not_refused_as_unwritten() -> None:
    combiner = group_commit.Combiner(lambda batch: 0.0)
    combiner.close(lambda: StoreClosed("The store was closed."))
    with pytest.raises(OutcomeUnknown, match="later"):
        combiner.serve(None, None, (Doubt(), 0))
    doubtful, plain = (Ticket(None, None, Nowhere()) for _ in range(2))
    doubtful.doubt = (Doubt(), 0)
    for ticket, told in [(doubtful, OutcomeUnknown), (plain, StoreClosed)]:
        combiner.submit(ticket)
        with pytest.raises(told):
            ticket.result()


class Nowhere:
    """Where no ticket is looked at."""

    def land(self, tickets: Sequence[Ticket]) -> None:
        pass


class Counting:
    """A server that writes each request under its name and answers with it; its transactions can be held up."""

    contended = True
    wire = None

    def __init__(self) -> None:
        #: Batches as they were conducted, and as each attempt served them.
        self.conducted: list[list[str]] = []
        self.served: list[list[str]] = []
        self.at_once = 1_000
        self.hold = threading.Event()
        self.hold.set()
        self.began = threading.Event()
        self.before_conduct: Callable[[], None] = lambda: None

    def prepare(self, requests: Sequence[str]) -> Sequence[str]:
        return requests

    def execute(self, tr: Transaction, requests: Sequence[str]) -> Sequence[str | Refused]:
        self.served.append(list(requests))
        answers: list[str | Refused] = []
        for request in requests[: self.at_once]:
            if request.startswith("bad"):
                raise LookupError(request)
            if request.startswith("no"):
                answers.append(Refused(ValueError(request)))
                continue
            tr.add(b"key " + request.encode(), 1)
            answers.append(request.upper())
        return answers

    def conduct(self, transact: Transact, requests: Sequence[str]) -> Sequence[str | Refused]:
        self.conducted.append(list(requests))
        self.began.set()
        assert self.hold.wait(LONG)
        self.before_conduct()
        answers: Sequence[str | Refused] = transact(lambda tr: self.execute(tr, requests))
        return answers


@pytest.fixture
def kv() -> Iterator[SimulatedStore]:
    store = SimulatedStore(slots=SLOTS)
    yield store
    store.close()


@pytest.fixture
def server() -> Counting:
    return Counting()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(300) as threads:
        yield threads


def waiting(kv: SimulatedStore, server: Counting) -> int:
    return len(kv.combiners.of(server))


def gather(
    kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor, requests: Sequence[str]
) -> tuple[Future[str], list[Future[str]]]:
    """Hold up a first request until the rest wait, in this order; let them all go."""
    server.hold.clear()
    first = pool.submit(kv.serve, server, "first")
    assert server.began.wait(LONG)
    others = []
    for n, request in enumerate(requests):
        others.append(pool.submit(kv.serve, server, request))
        while waiting(kv, server) < n + 1:
            pass
    server.hold.set()
    return first, others


def written(kv: SimulatedStore) -> dict[str, int]:
    pairs = kv.read(lambda tr: tr.get_range(b"key ", b"key!", limit=1_000).wait())
    return {key[4:].decode(): int.from_bytes(value, "little") for key, value in pairs}


def test_a_lone_request_is_served_in_its_own_thread(kv: SimulatedStore, server: Counting) -> None:
    before = set(threading.enumerate())
    assert [kv.serve(server, name) for name in ("a", "b")] == ["A", "B"]
    assert server.conducted == [["a"], ["b"]]
    assert set(threading.enumerate()) <= before


def test_requests_that_wait_together_make_one_batch_in_their_order(
    kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor
) -> None:
    first, others = gather(kv, server, pool, ["a", "b", "c"])
    assert [first.result(LONG), *(one.result(LONG) for one in others)] == ["FIRST", "A", "B", "C"]
    assert server.conducted == [["first"], ["a", "b", "c"]]


def test_no_thread_joins_a_batch_whose_read_version_may_be_taken(
    kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor
) -> None:
    """Conducting comes before the transaction begins: what comes from then on is served in the next one."""
    late: list[Future[str]] = []

    def come_late() -> None:
        if not late:
            late.append(pool.submit(kv.serve, server, "late"))
            while not waiting(kv, server):
                pass

    server.before_conduct = come_late
    assert kv.serve(server, "early") == "EARLY"
    assert late[0].result(LONG) == "LATE"
    assert server.served == [["early"], ["late"]]


def test_a_batch_is_frozen_until_its_outcome_is_known(server: Counting, pool: ThreadPoolExecutor) -> None:
    """Its first answer is lost: it is asked after, and tried again, with exactly those it had."""
    kv = SimulatedStore(slots=SLOTS, faults=Script([None, Fault.UNKNOWN_BEFORE, Fault.CONFLICT, Fault.UNKNOWN_AFTER]))
    more: list[Future[str]] = []
    execute = server.execute

    def come_meanwhile(tr: Transaction, requests: Sequence[str]) -> Sequence[str | Refused]:
        if requests[0] == "a":
            more.append(pool.submit(kv.serve, server, f"late{len(more)}"))
            while waiting(kv, server) < len(more):
                pass
        return execute(tr, requests)

    server.execute = come_meanwhile
    first, others = gather(kv, server, pool, ["a", "b"])
    assert [first.result(LONG), *(one.result(LONG) for one in others)] == ["FIRST", "A", "B"]
    assert [one.result(LONG) for one in more] == [f"LATE{n}" for n in range(len(more))]
    assert server.served[1:4] == [["a", "b"]] * 3
    assert set(written(kv).values()) == {1}
    kv.close()


def test_what_does_not_fit_is_served_next_and_before_newcomers(
    kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor
) -> None:
    server.at_once = 2
    first, others = gather(kv, server, pool, ["a", "b", "c", "d", "e"])
    assert [one.result(LONG) for one in others] == ["A", "B", "C", "D", "E"]
    assert first.result(LONG) == "FIRST"
    assert [batch[:2] for batch in server.conducted] == [["first"], ["a", "b"], ["c", "d"], ["e"]]


def test_a_batch_has_at_most_200_requests(kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor) -> None:
    names = [f"{n:03d}" for n in range(250)]
    first, others = gather(kv, server, pool, names)
    assert [one.result(LONG) for one in others] == names
    assert first.result(LONG) == "FIRST"
    assert [len(batch) for batch in server.conducted] == [1, group_commit.MAX_REQUESTS, 50]


def test_an_error_is_told_to_the_guilty_only(kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor) -> None:
    _, others = gather(kv, server, pool, ["a", "bad", "b", "no", "c"])
    for one, answer in zip(others, ["A", LookupError, "B", ValueError, "C"], strict=True):
        if isinstance(answer, str):
            assert one.result(LONG) == answer
        else:
            with pytest.raises(answer):
                one.result(LONG)
    assert set(written(kv)) == {"first", "a", "b", "c"}
    assert set(written(kv).values()) == {1}


def test_an_unknown_outcome_is_told_to_the_whole_batch_and_no_thread_is_served_again(
    server: Counting, pool: ThreadPoolExecutor
) -> None:
    kv = SimulatedStore(faults=Script([None, Fault.UNKNOWN_AFTER]))  # without slots, the result cannot be known
    _, others = gather(kv, server, pool, ["a", "b"])
    errors = [one.exception(LONG) for one in others]
    assert all(isinstance(error, OutcomeUnknown) for error in errors)
    assert errors[0] is not errors[1]
    assert set(written(kv).values()) == {1}
    kv.close()


class Interrupt(BaseException):
    """As a signal handler raises it."""


def interrupted(kv: SimulatedStore, server: Counting, request: str, when: Callable[[], bool]) -> BaseException | None:
    """Serve a request in a thread that is interrupted once this is true."""

    def poll() -> None:
        while not when():
            pass
        raise Interrupt

    def bell() -> Bell:
        made = Bell()
        made.listen = poll
        return made

    combiner = kv.combiners.of(server)
    combiner.bell = bell
    try:
        kv.serve(server, request)
    except BaseException as error:
        return error
    finally:
        combiner.bell = None
    return None


def test_a_thread_that_is_interrupted_while_waiting_is_never_served(
    kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor
) -> None:
    server.hold.clear()
    first = pool.submit(kv.serve, server, "first")
    assert server.began.wait(LONG)
    assert isinstance(interrupted(kv, server, "gone", lambda: True), Interrupt)
    assert waiting(kv, server) == 0
    server.hold.set()
    first.result(LONG)
    assert kv.serve(server, "next") == "NEXT"
    assert set(written(kv)) == {"first", "next"}


def test_a_thread_that_is_interrupted_while_served_waits_for_the_outcome(
    kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor
) -> None:
    taken = threading.Event()

    def taken_and_interrupted() -> bool:
        return len(server.conducted) == 2 and server.conducted[1] == ["leads", "served"] and not taken.set()

    server.hold.clear()
    first = pool.submit(kv.serve, server, "first")
    assert server.began.wait(LONG)
    leads = pool.submit(kv.serve, server, "leads")
    while waiting(kv, server) < 1:
        pass
    gone = pool.submit(interrupted, kv, server, "served", taken_and_interrupted)
    while waiting(kv, server) < 2:
        pass
    server.before_conduct = lambda: None if len(server.conducted) < 2 else assert_(taken.wait(LONG))
    server.hold.set()
    assert isinstance(gone.result(LONG), Interrupt)
    assert written(kv)["served"] == 1, "it was told before the outcome was known"
    assert [first.result(LONG), leads.result(LONG)] == ["FIRST", "LEADS"]


def assert_(condition: bool) -> None:
    assert condition


def test_a_thread_that_is_interrupted_while_served_and_left_over_does_not_wait_again(
    kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor
) -> None:
    server.at_once = 1
    interrupts = threading.Event()
    server.hold.clear()
    first = pool.submit(kv.serve, server, "first")
    assert server.began.wait(LONG)
    ahead = pool.submit(kv.serve, server, "ahead")
    while waiting(kv, server) < 1:
        pass
    gone = pool.submit(interrupted, kv, server, "gone", lambda: len(server.conducted) > 1 and not interrupts.set())
    while waiting(kv, server) < 2:
        pass
    server.before_conduct = lambda: None if len(server.conducted) < 2 else assert_(interrupts.wait(LONG))
    server.hold.set()
    assert [first.result(LONG), ahead.result(LONG)] == ["FIRST", "AHEAD"]
    assert isinstance(gone.result(LONG), Interrupt)
    assert kv.serve(server, "next") == "NEXT"
    assert written(kv).items() >= {"first": 1, "ahead": 1, "next": 1}.items()


class Desk:
    """A landing that keeps what arrives, and how often something did."""

    def __init__(self) -> None:
        self.landings: list[list[Ticket]] = []
        self.came = threading.Semaphore(0)

    def land(self, tickets: Sequence[Ticket]) -> None:
        self.landings.append(list(tickets))
        self.came.release()


def test_tickets_of_a_batch_land_together(kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor) -> None:
    desk = Desk()
    server.hold.clear()
    submitted(kv, server, "first", desk)
    assert server.began.wait(LONG)
    tickets = [submitted(kv, server, name, desk) for name in ("a", "bad", "c", "d")]
    assert kv.withdraw(tickets[3])
    assert not kv.withdraw(tickets[3])
    server.hold.set()
    assert desk.came.acquire(timeout=LONG)
    assert desk.came.acquire(timeout=LONG)
    assert [[ticket.answer for ticket in landed] for landed in desk.landings] == [["FIRST"], ["A", None, "C"]]
    assert isinstance(desk.landings[1][1].error, LookupError)
    assert not kv.withdraw(tickets[0])
    assert set(written(kv)) == {"first", "a", "c"}


def test_threads_and_tickets_are_served_together(
    kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor
) -> None:
    desk = Desk()
    server.hold.clear()
    submitted(kv, server, "ticket", desk)
    assert server.began.wait(LONG)
    thread = pool.submit(kv.serve, server, "thread")
    while waiting(kv, server) < 1:
        pass
    submitted(kv, server, "second", desk)
    server.hold.set()
    assert thread.result(LONG) == "THREAD"
    assert desk.came.acquire(timeout=LONG)
    assert desk.came.acquire(timeout=LONG)
    assert server.conducted == [["ticket"], ["thread", "second"]]


def is_open(kv: SimulatedStore) -> bool:
    try:
        kv.size()
    except StoreClosed:
        return False
    return True


def test_closing_finishes_what_was_accepted(server: Counting, pool: ThreadPoolExecutor) -> None:
    kv = SimulatedStore(slots=SLOTS)
    desk = Desk()
    server.hold.clear()
    first = pool.submit(kv.serve, server, "first")
    assert server.began.wait(LONG)
    submitted(kv, server, "ticket", desk)
    closing = pool.submit(kv.close)
    while is_open(kv):
        pass
    with pytest.raises(StoreClosed):
        kv.serve(server, "late")
    with pytest.raises(StoreClosed):
        submitted(kv, server, "late", desk)
    assert not closing.done()
    server.hold.set()
    closing.result(LONG)
    assert first.result(LONG) == "FIRST"
    assert desk.landings[0][0].answer == "TICKET"


class NoThread:
    """Stands for a machine that lets no thread begin."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        start = threading.Thread.start
        self.over = False
        self.tried = threading.Event()

        def refuse(thread: threading.Thread) -> None:
            if thread.name != "pq-combining" or self.over:
                return start(thread)
            self.tried.set()
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)


def test_a_ticket_that_no_thread_can_serve_is_refused_and_the_next_one_served(
    kv: SimulatedStore, server: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, machine = Desk(), NoThread(monkeypatch)
    refused = submitted(kv, server, "refused", desk)
    assert desk.came.acquire(timeout=LONG)
    assert isinstance(refused.error, StoreUnavailable)
    assert not kv.withdraw(refused)
    machine.over = True
    submitted(kv, server, "served", desk)
    assert desk.came.acquire(timeout=LONG)
    assert [[ticket.answer for ticket in landed] for landed in desk.landings] == [[None], ["SERVED"]]
    assert kv.serve(server, "thread") == "THREAD"
    assert set(written(kv)) == {"served", "thread"}
    kv.close()


def test_requests_are_refused_while_no_thread_can_be_started_for_them(
    kv: SimulatedStore, server: Counting, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = NoThread(monkeypatch)
    first, (a, b) = gather(kv, server, pool, ["a", "b"])
    assert first.result(LONG) == "FIRST"
    errors = [one.exception(LONG) for one in (a, b)]
    assert [type(error) for error in errors] == [StoreUnavailable] * 2
    assert errors[0] is not errors[1]
    machine.over = True
    assert kv.serve(server, "next") == "NEXT"
    assert set(written(kv)) == {"first", "next"}


class Script:
    """Faults of commits, one after the other; then none."""

    def __init__(self, commits: Sequence[Fault | None]) -> None:
        self._commits = list(commits)

    def at_commit(self) -> Fault | None:
        return self._commits.pop(0) if self._commits else None

    def at_watch(self) -> Fault | None:
        return None

    def clock_jump(self) -> float:
        return 0.0

    def lateness(self) -> object:
        raise AssertionError("nothing is late here")
