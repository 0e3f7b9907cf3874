"""Safeguards of hosting, each of which a process of the tests can be without."""

from typing import Any

from queues.kv.embedded.host import ANSWERS, Host
from queues.kv.embedded.transaction import Batch


def _store_no_answers() -> None:
    put = Batch.put
    Batch.put = lambda batch, key, value: None if key.startswith(ANSWERS) else put(batch, key, value)


def _host_for_good() -> None:
    Host.holds = lambda host, txn: True


def _store_the_last_answers_alone() -> None:
    note = Host.note

    def note_these(host: Host, batch: Batch, done: Any) -> None:
        host.unsent.clear()
        note(host, batch, done)

    Host.note = note_these


#: By name, what takes the safeguard away.
MUTANTS: dict[str, Any] = {
    "answers are not stored": _store_no_answers,
    "a host commits after it was replaced": _host_for_good,
    "answers that no socket took are not stored again": _store_the_last_answers_alone,
}
