"""Hosting without its safeguards, each in turn: schedules of processes that share a store must notice.

Each test is named after the rule that its mutant breaks; docs/decisions/0022 states the rules.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from queues.kv.embedded import host, host_client
from queues.kv.embedded.host import ANSWERS, Host, HostRecord, answers_key, own_answers_key
from queues.kv.embedded.host_client import Connection, Sharing
from queues.kv.embedded.host_election import HostElection
from queues.kv.embedded.transaction import Batch
from queues.kv.port import Ticket
from tests.simulation.hosted import Hosted, Trouble
from tests.simulation.schedules import noticed

#: Schedules within which every mutant must be noticed.
WITHIN = 600
#: Hosts die or are suspended, and callers wait in vain.
TROUBLE = Trouble(deaths=0.006, suspensions=0.008, cuts=0.3, step=0.02)
CALM = Trouble(step=0.05)
FAILING = Trouble(deaths=0.006, suspensions=0.004, failures=0.3, step=0.02)
#: Hosts die between a commit and its answers, and callers look for these late.
LATE = Trouble(deaths_of_hosts=0.2, suspensions_of_callers=0.2, cuts=0.5)


def unsafe(trouble: Trouble = TROUBLE, first: int = 0) -> str:
    """Return what the first schedule that fails says; `first` is not far from one that does."""
    return noticed(partial(Hosted, trouble=trouble), range(first, first + WITHIN))


def test_a_host_commits_requests_only_while_the_record_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "holds", lambda host, txn: True)
    assert unsafe()


def test_a_commit_holds_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    put = Batch.put
    monkeypatch.setattr(Batch, "put", lambda b, key, value: None if key.startswith(ANSWERS) else put(b, key, value))
    assert unsafe()


def test_an_answer_is_kept_until_its_socket_has_taken_it(monkeypatch: pytest.MonkeyPatch) -> None:
    note = Host.note

    def note_these(host: Host, batch: Batch, done: Sequence[Ticket]) -> None:
        host.unsent.clear()
        note(host, batch, done)

    monkeypatch.setattr(Host, "note", note_these)
    assert unsafe(LATE, 150)


def test_a_caller_in_doubt_reads_its_socket_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "rest", lambda connection: [])
    assert unsafe(first=140)


def test_a_caller_in_doubt_looks_while_the_host_cannot_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks before its write transaction."""
    doubt, settle = Sharing.doubt, Connection.settle
    looked: dict[bytes, tuple[Any, dict[bytes, bytes | None]]] = {}

    def look(sharing: Sharing, connection: Connection, tickets: Sequence[Ticket]) -> None:
        name = msgspec.msgpack.decode(connection.record, type=HostRecord).socket
        keys = (key := answers_key(name)), own_answers_key(key, connection.id, connection.number)
        records = {each: sharing._read(each) for each in keys}  # noqa: SLF001
        looked[connection.id] = connection.rest(), records
        doubt(sharing, connection, tickets)

    def settle_by(connection: Connection, txn: Any, at: int, ticket: Ticket) -> None:
        found, records = looked[connection.id]
        monkeypatch.setattr(Connection, "rest", lambda connection: found)
        settle(connection, records, at, ticket)
        monkeypatch.setattr(Connection, "rest", rest)

    rest = Connection.rest
    monkeypatch.setattr(Sharing, "doubt", look)
    monkeypatch.setattr(Connection, "settle", settle_by)
    assert unsafe()


def test_a_caller_that_executes_a_sent_request_replaces_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = HostElection._claim  # noqa: SLF001

    def claim_first(election: HostElection, batch: Batch) -> None:
        if batch.txn.get(host.HOST) is None:
            claim(election, batch)

    monkeypatch.setattr(HostElection, "_claim", claim_first)
    assert unsafe()


def test_a_host_keeps_its_answers_under_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (host, host_client):
        monkeypatch.setattr(module, "answers_key", lambda name: ANSWERS + b"any")
    assert unsafe(LATE, 100)


def test_an_answer_tells_the_number_of_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    read = host.read_answers
    decode = host._decode_answers  # noqa: SLF001

    def read_any(record: bytes | None, connection: bytes, number: int) -> Any:
        found = {} if record is None else decode(record[host._HEAD.size :])  # noqa: SLF001
        return read(record, connection, found.get(connection, (0, b""))[0])

    monkeypatch.setattr(host_client, "read_answers", read_any)
    assert unsafe(first=70)


def test_a_connection_is_kept_until_the_answer_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    doubt = Sharing.doubt

    def leave(sharing: Sharing, connection: Connection, tickets: Sequence[Ticket]) -> None:
        connection.rest()
        connection.close()
        doubt(sharing, connection, tickets)

    monkeypatch.setattr(Sharing, "doubt", leave)
    assert unsafe(first=80)


def test_stored_answers_are_trusted_for_less_time_than_they_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_client, "_TRUSTED", 1e9)
    assert unsafe(LATE)


def test_answers_of_a_commit_that_failed_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host._Message, "forget", lambda message, executed: None)  # noqa: SLF001
    assert unsafe(FAILING, 70)


def test_a_process_does_not_connect_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostElection, "own", property(lambda election: b"", lambda election, own: None), raising=False)
    assert unsafe(CALM)
