"""Errors keep the template and the values of what they say, and say in English what they always said."""

import copy
import pickle
from collections.abc import Callable
from datetime import datetime

import pytest

from queues import Store, errors
from queues.errors import Worded, Words
from queues.model.names import check_name
from queues.model.priority import normalize, parse_priority


def refused(act: Callable[[], object]) -> Worded:
    with pytest.raises(Worded) as caught:
        act()
    return caught.value


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: check_name(""), "A queue needs a name."),
        (lambda: check_name("x" * 1_000), "A queue's name has at most 200 characters; this one has 1,000."),
        (
            lambda: check_name("a b"),
            "A queue's name is made of letters, digits and . _ : - ; character 2 is a space.",
        ),
        (
            lambda: check_name("{x}"),
            "A queue's name is made of letters, digits and . _ : - ; character 1 is “{” (U+007B).",
        ),
        (lambda: parse_priority("1e400", "int"), "“1e400” is not a whole number."),
        (lambda: parse_priority("{0.__class__}", "float"), "“{0.__class__}” is not a number."),
        (lambda: normalize("x", "int"), "A priority of this queue is a whole number, not text."),
        (lambda: normalize([], "float"), "A priority of this queue is a number, not a list."),
    ],
)
def test_what_a_refusal_says(act: Callable[[], object], text: str) -> None:
    error = refused(act)
    assert str(error) == text
    assert type(str(error)) is str


def test_what_the_refusals_of_a_store_say(store: Store) -> None:
    queue = store.create_queue("orders")
    items = [queue.push(b"1", priority=1), queue.push(b"2", priority=2), queue.push(b"3", priority=3)]
    acts = store.actions("ops")
    said = {
        "No queue is named “ordres”. Did you mean “orders”?": lambda: store.queue("ordres"),
        "No queue is named “{0}”.": lambda: store.queue("{0}"),
        "A queue named “orders” exists already.": lambda: store.create_queue("orders"),
        "A value has at most 90,000 bytes; this one has 90,001.": lambda: queue.push(b"x" * 90_001, priority=1),
        "A due time needs a time zone: a naive datetime says no moment.": lambda: queue.push(
            b"1",
            priority=1,
            due=datetime(2030, 1, 1),
        ),
        "To delete this queue, type its name: orders. Nothing was deleted.": lambda: acts.delete_queue(
            "orders", confirm="x", expect_depth=3
        ),
        "orders holds 3 items now, not the 4,000 you confirmed: nothing was deleted.": lambda: acts.delete_queue(
            "orders", confirm="orders", expect_depth=4_000
        ),
        "1 of the 2 items is not here any more: taken or moved meanwhile. Nothing was changed.": lambda: (
            acts.delete_items("orders", [items[0].id, "0" * 32])
        ),
        "2 of the 2 items are not delayed: only delayed items are promoted. Nothing was changed.": lambda: acts.promote(
            "orders", [items[0].id, items[1].id]
        ),
        "The item is ready, not delayed: only delayed items are promoted. Nothing was changed.": lambda: acts.promote(
            "orders", [items[0].id]
        ),
    }
    for text, act in said.items():
        assert str(refused(act)) == text
    queue.pause(reason="{ledger}", by="ops-2")
    assert str(refused(queue.pop_min)) == "orders is paused by ops-2: {ledger}"


def test_values_are_never_read_as_templates() -> None:
    error = errors.QueuePaused("{queue} is paused: {reason}", queue="{reason}", reason="{queue!r:>99999999}")
    assert str(error) == "{reason} is paused: {queue!r:>99999999}"
    assert str(errors.StoreError("{as} it is")) == "{as} it is"


def test_a_template_and_its_values_are_kept() -> None:
    error = errors.NotForAttached("legacy", "its items are ready or gone, not {state}.", state="dead")
    assert error.words.template == "{queue} is an attached queue, which other programs write as well: {why}"
    why = error.words.values["why"]
    assert isinstance(why, Words)
    assert why.template == "its items are ready or gone, not {state}."
    assert why.values == {"state": "dead"}


@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_are_copied_with_all_they_know(again: Callable[[Worded], Worded]) -> None:
    for error in (
        errors.QueueNotFound("orders", ("order",)),
        errors.DepthChanged("{queue} holds {depth:,} items now.", 7, queue="{0}", depth=7_000),
        errors.StoreUnreachable("The cluster is busy or recovering ({reason}).", reason="{}"),
    ):
        other = again(error)
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert other.words.template == error.words.template
        assert other.words.values == error.words.values
        assert vars(other) == vars(error)
