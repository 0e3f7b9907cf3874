"""Answers of reads that were there at once."""

from __future__ import annotations

from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Ready(Generic[T_co]):
    """A read's answer that is already known."""

    __slots__ = ("_answer",)

    def __init__(self, answer: T_co) -> None:
        self._answer = answer

    def wait(self) -> T_co:
        """Return the answer."""
        return self._answer
