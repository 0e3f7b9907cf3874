"""The boards that a person sees."""

from collections.abc import Sequence
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


def listed(scope: Scope, names: Sequence[str]) -> list[SeenBoard]:
    """Return the boards by name; `names` are the queues that the person sees."""
    in_use = Count("links", filter=Q(links__revoked_at=None, links__used_at__isnull=False))
    boards = list(Board.objects.annotate(screens=in_use))
    counts = {board.pk: len(Scope.of_globs(board.globs).of_those(names)) for board in boards}
    # A board of other people's queues alone is not there: not even its name.
    there = {board.pk: board for board in boards if scope.everything or counts[board.pk]}
    return [
        SeenBoard(
            board=board,
            globs=board.globs if scope.everything else (),
            queues=counts[key],
            others=[there[other] for other in board.rotation if other in there],
            screens=board.screens,
        )
        for key, board in there.items()
    ]
