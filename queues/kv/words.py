"""The words of an error: a sentence and what is filled in, kept apart so that who shows it can translate it."""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Value: TypeAlias = str | int | float


class Words(str):
    """A text in English that remembers its `template` and the `values` in it.

    The template is ours and names its values as `str.format` does; what users wrote stands in the values only, where
    no brace means anything. A template without values is not formatted at all. A value may be `Words` itself.
    """

    template: str
    values: Mapping[str, Value]
    #: False without the full stop that the template ends with: see `within`.
    stops: bool = True

    def __new__(cls, template: str, /, **values: Value) -> Words:
        """Fill in the values."""
        if not values and isinstance(template, Words):
            return template
        self = super().__new__(cls, template.format(**values) if values else template)
        self.template, self.values = str(template), values
        return self

    def cut_to(self, text: str) -> Words:
        """Return the same where its English is only the beginning of what the template says."""
        words = Words(text)
        words.template, words.values = self.template, self.values
        return words

    def within(self) -> Words:
        """Return the same without its full stop, in any language, as it is said within a line about another thing."""
        words = self.cut_to(self.rstrip("."))
        words.stops = False
        return words


class Worded(Exception):
    """An error whose message can be put into other languages: it is made of a template and its values."""

    def __init__(self, template: str = "", /, **values: Value) -> None:
        super().__init__(Words(template, **values))

    @property
    def words(self) -> Words:
        """What `str` of the error says, with the template and the values that it was made of."""
        words: Words = self.args[0]
        return words

    def __reduce__(self) -> tuple[Any, ...]:
        """Be copied and pickled as it is: the words of it are no template to begin with."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]
