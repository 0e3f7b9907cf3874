"""The check of histories itself: what it accepts, and what it does not."""

import math
from contextlib import nullcontext

import pytest

from queues import Item
from tests.simulation.history import History, Operation, Put, Take, Violation

NOT_LINEARIZABLE = "not linearizable"


class Told:
    """A history told call by call: (begun, ended) of each operation, its answer, and what is there in the end."""

    def __init__(self) -> None:
        self.history = History()
        self.count = 0

    def push(self, begun: int, ended: float, value: str, *, done: bool | None = True, count: int | None = None) -> None:
        self.count += 1
        operation = self._add("push", begun, ended, done)
        operation.puts.append(Put(queue="q", value=value.encode()))
        if done:
            self.see(value, self.count if count is None else count)

    def pop(self, begun: int, ended: float, *values: str, n: int = 1, end: str = "min", done: bool = True) -> None:
        operation = self._add("pop", begun, ended, done)
        taken = tuple(value.encode() for value in values) if done else None
        operation.takes.append(Take(queue="q", end=end, n=n, values=taken))

    def see(self, value: str, count: int) -> None:
        """Values begin with a digit: their priority."""
        item = Item(id=f"{count:040x}", priority=int(value[0]), count=count, raw=value.encode(), pushed_at=None, size=2)
        self.history.saw("q", [item])

    def ends_with(self, *values: str, refused: str = "") -> None:
        """Check the history, which ends with these values; `refused` is what the check says against it."""
        with pytest.raises(Violation, match=refused) if refused else nullcontext():
            self.history.check({"q": [value.encode() for value in values]})

    def _add(self, verb: str, begun: int, ended: float, done: bool | None) -> Operation:
        operation = self.history.add(0, verb, begun)
        operation.done = done
        operation.ended = ended if done else math.inf
        return operation


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def two(told: Told) -> Told:
    """Two items that were pushed one after the other."""
    told.push(1, 2, "1a")
    told.push(3, 4, "2a")
    return told


def test_pops_one_after_the_other_are_linearizable(two: Told) -> None:
    two.pop(5, 6, "1a")
    two.pop(7, 8, "2a", end="max")
    two.pop(9, 10)
    two.ends_with()


@pytest.mark.parametrize(
    ("pushed", "popped", "refused"),
    [((4, 5), (3, 6), ""), ((3, 4), (5, 6), NOT_LINEARIZABLE)],
    ids=["while the pop is under way", "before the pop"],
)
def test_a_smaller_item_may_be_left_if_it_was_pushed(
    pushed: tuple[int, int], popped: tuple[int, int], refused: str, told: Told
) -> None:
    told.push(1, 2, "2a")
    told.push(*pushed, "1a")
    told.pop(*popped, "2a")
    told.ends_with("1a", refused=refused)


def test_a_pop_cannot_find_nothing_where_something_was_all_the_time(told: Told) -> None:
    told.push(1, 2, "1a")
    told.pop(3, 4)
    told.ends_with("1a", refused=NOT_LINEARIZABLE)


def test_what_two_pops_saw_must_agree(told: Told) -> None:
    """Each alone has a moment; together they have none: the second item was pushed before the first was taken."""
    told.push(1, 2, "2a")
    told.push(3, 9, "1a")
    told.pop(4, 5, "1a")
    told.pop(6, 7)
    told.ends_with("2a", refused=NOT_LINEARIZABLE)


def test_a_batch_takes_the_first_ones_and_stops_short_only_at_the_end(two: Told) -> None:
    two.push(5, 6, "3a")
    two.pop(7, 8, "1a", "2a", n=3)
    two.ends_with("3a", refused=NOT_LINEARIZABLE)


def test_an_item_that_is_taken_twice_is_noticed(told: Told) -> None:
    told.push(1, 2, "1a")
    told.pop(3, 5, "1a")
    told.pop(4, 6, "1a")
    told.ends_with(refused="twice")


def test_an_item_that_is_taken_and_still_there_is_noticed(told: Told) -> None:
    told.push(1, 2, "1a")
    told.pop(3, 5, "1a")
    told.ends_with("1a", refused="twice")


def test_an_item_that_is_lost_is_noticed(told: Told) -> None:
    told.push(1, 2, "1a")
    told.ends_with(refused="lost")


def test_an_item_that_was_never_pushed_is_noticed(told: Told) -> None:
    told.see("1a", 1)
    told.pop(1, 2, "1a")
    told.ends_with(refused="from nowhere")


def test_a_push_that_wrote_although_it_said_otherwise_is_noticed(told: Told) -> None:
    told.push(1, 2, "1a", done=None)
    told.see("1a", 1)
    told.ends_with("1a", refused="in spite of the answer")


def test_equals_keep_the_order_of_pushes_that_did_not_overlap(told: Told) -> None:
    told.push(1, 2, "1a", count=7)
    told.push(3, 4, "1b", count=3)
    told.ends_with("1b", "1a", refused="was pushed before")


def test_equals_that_overlapped_are_in_any_order(told: Told) -> None:
    told.push(1, 4, "1a", count=7)
    told.push(2, 3, "1b", count=3)
    told.pop(5, 6, "1b")
    told.pop(7, 8, "1a")
    told.ends_with()


def test_a_push_of_unknown_outcome_may_have_happened_much_later(told: Told) -> None:
    told.push(1, 2, "1a", done=False)
    told.pop(3, 4)
    told.see("1a", 1)
    told.pop(5, 6, "1a")
    told.pop(7, 8)
    told.ends_with()


def test_a_push_of_unknown_outcome_may_never_have_happened(told: Told) -> None:
    told.push(1, 2, "1a", done=False)
    told.pop(3, 4)
    told.ends_with()


def test_a_push_of_unknown_outcome_happened_at_most_once(told: Told) -> None:
    told.push(1, 2, "1a", done=False)
    told.see("1a", 1)
    told.pop(3, 4, "1a")
    told.ends_with("1a", refused="twice")


def test_a_pop_of_unknown_outcome_may_have_taken_what_is_missing(two: Told) -> None:
    two.pop(5, 6, done=False)
    two.pop(7, 8, "2a")
    two.ends_with()


def test_a_pop_of_unknown_outcome_took_the_end_that_it_was_for(two: Told) -> None:
    """What is missing was behind an item that was there until later: no pop of this end can have taken it."""
    two.pop(5, 6, done=False, end="min")
    two.ends_with("1a", refused=NOT_LINEARIZABLE)


def test_a_pop_of_unknown_outcome_takes_no_more_than_it_asked_for(two: Told) -> None:
    two.pop(5, 6, done=False)
    two.ends_with(refused="lost")


def test_a_batch_of_unknown_outcome_may_have_taken_an_item_that_no_caller_saw(two: Told) -> None:
    """Two pushed and asked for two, of which one is still there: the other that was taken was of unknown outcome."""
    two.push(5, 6, "0a", done=False)
    two.pop(7, 8, done=False, n=2)
    two.ends_with("2a")


def test_a_batch_of_unknown_outcome_takes_as_many_as_it_asked_for(two: Told) -> None:
    two.pop(7, 8, done=False, n=2)
    two.ends_with("2a", refused=NOT_LINEARIZABLE)
