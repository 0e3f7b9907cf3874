"""Errors keep the template and the values of what they say, and say in English what they always said."""

import copy
import pickle
from collections.abc import Callable

import pytest

from queues import errors
from queues.errors import Worded, Words


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
