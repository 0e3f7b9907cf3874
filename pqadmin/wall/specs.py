"""A board as a value, read from the site's tables: what every screen that shows it needs to know."""

import hashlib
from dataclasses import dataclass

from pqadmin.accounts.scope import Scope
from pqadmin.wall.models import Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a screen shows at one time: a board's own choice of queues."""

    name: str
    globs: tuple[str, ...]
    order: str
    density: str

    @property
    def scope(self) -> Scope:
        """Return what a link to this alone may see."""
        return Scope.of_globs(self.globs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Which part is on, of how many, and until when (seconds since the epoch). None: for ever."""

    index: int = 0
    of: int = 1
    until: float | None = None


#: The turn of a board that takes turns with no other.
ALWAYS = Turn()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A board and those that it takes turns with; the first part is its own."""

    board: int
    slug: str
    name: str
    theme: str
    #: A code, or empty: as the screen's browser asks.
    language: str
    seconds: int
    parts: tuple[Part, ...]

    @property
    def scope(self) -> Scope:
        """Return what a link to the board may see: its queues and those of the boards it takes turns with."""
        return Scope.of_globs(glob for part in self.parts for glob in part.globs)

    @property
    def revision(self) -> str:
        """Return a digest of everything that a page must be reloaded for."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]

    def turn(self, now: float) -> Turn:
        """Return the turn at a time (seconds since the epoch), the same on all screens."""
        if len(self.parts) == 1:
            return ALWAYS
        turns = int(now // self.seconds)
        return Turn(index=turns % len(self.parts), of=len(self.parts), until=float((turns + 1) * self.seconds))


def read(slug: str) -> Spec | None:
    """Return the board of this address, or None."""
    board = Board.objects.filter(slug=slug).first()
    return None if board is None else of(board)


def of(board: Board) -> Spec:
    """Return the board as a value. Boards of its rotation that are gone are left out."""
    others = Board.objects.in_bulk([key for key in board.rotation if key != board.pk]) if board.rotation else {}
    shown = [board, *(others[key] for key in board.rotation if key in others)]
    return Spec(
        board=board.pk,
        slug=board.slug,
        name=board.name,
        theme=board.theme,
        language=board.language,
        seconds=board.seconds,
        parts=tuple(
            Part(name=each.name, globs=tuple(each.globs), order=each.order, density=each.density) for each in shown
        ),
    )
