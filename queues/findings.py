"""What is wrong with a store, each in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "counter", "band", "index", "drift", "id", "order", "items", "record", "name", "orphan", "slot", "unclaimed"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    kind: Kind
    #: The queue's name, or what it would be called; None: it is about the store as a whole.
    queue: str | None
    says: str
    #: Whether `--repair` has a way to mend it.
    mendable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What an examination of a whole store found."""

    findings: tuple[Finding, ...]
    #: What was not, or not wholly, examined, and why; no sign of damage.
    notes: tuple[str, ...]
    #: What was mended, in sentences.
    mended: tuple[str, ...]
    queues: int
    items: int

    @property
    def healthy(self) -> bool:
        """Say whether nothing is wrong."""
        return not self.findings


def counted(n: int, one: str, many: str = "") -> str:
    """Write how many there are of something: 1 item, 2 items."""
    return f"{n} {one if n == 1 else many or one + 's'}"
