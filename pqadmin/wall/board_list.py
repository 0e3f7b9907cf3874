"""The boards that a person sees."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db.models import Count, Q

from pqadmin.accounts.scope import Scope
from pqadmin.wall.models import Board


class SeenBoard(NamedTuple):
    """A board as a person sees it: of other people's queues there are neither names nor patterns."""

    board: Board
    globs: Sequence[str]
    #: How many queues of the person's it shows now.
    queues: int
    #: The boards that it takes turns with.
    others: Sequence[Board]
    #: Links in use.
    screens: int


#: Of a link in use.
_IN_USE = {"revoked_at": None, "used_at__isnull": False}


def alone(board: Board, names: Sequence[str]) -> SeenBoard:
    """Return one board as an admin sees it; `names` are all queues."""
    return SeenBoard(
        board=board,
        globs=board.globs,
        queues=_shown(board, names),
        others=_others(board, Board.objects.in_bulk(board.rotation)),
        screens=board.links.filter(**_IN_USE).count(),
    )


def listed(scope: Scope, names: Sequence[str]) -> list[SeenBoard]:
    """Return the boards by name; `names` are the queues that the person sees."""
    in_use = Count("links", filter=Q(**{f"links__{name}": value for name, value in _IN_USE.items()}))
    boards = list(Board.objects.annotate(screens=in_use))
    counts = {board.pk: _shown(board, names) for board in boards}
    # A board of other people's queues alone is not there: not even its name.
    there = {board.pk: board for board in boards if scope.everything or counts[board.pk]}
    return [
        SeenBoard(
            board=board,
            globs=board.globs if scope.everything else (),
            queues=counts[key],
            others=_others(board, there),
            screens=board.screens,
        )
        for key, board in there.items()
    ]


def _shown(board: Board, names: Sequence[str]) -> int:
    return len(Scope.of_globs(board.globs).of_those(names))


def _others(board: Board, there: Mapping[int, Board]) -> list[Board]:
    return [there[key] for key in board.rotation if key in there]
