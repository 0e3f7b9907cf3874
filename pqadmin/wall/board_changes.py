"""Changes of boards: each in one transaction of the site's tables, audited before it commits.

The audit is in the queue store, the boards are not: when the audit cannot be written, nothing is changed; a crash
between the two can leave an audit record without its change, never a change without a record.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pqadmin.pages.refusals import NotPossible
from pqadmin.site_audit import Author, note
from pqadmin.wall import links
from pqadmin.wall.forms import FIELDS
from pqadmin.wall.models import Board


def make_board(values: Mapping[str, Any], *, by: Author, now: datetime) -> Board:
    """Make a board; raise `NotPossible`."""
    with transaction.atomic():
        given = {name: values[name] for name in ("slug", *FIELDS)}
        try:
            with transaction.atomic():
                board = Board.objects.create(**given, made_by=by.name, made_at=now, changed_by=by.name, changed_at=now)
        except IntegrityError:  # another board took the address since it was looked up
            raise NotPossible(_("Another board has this address."), "slug") from None
        note(by, "make_board", after=_told(board), result=board)
    return board


class BoardChanged(Exception):
    """The board was changed since its form was made; nothing was changed."""

    def __init__(self, board: Board) -> None:
        super().__init__(board.slug)
        #: As it is now.
        self.board = board


def change_board(board: Board, values: Mapping[str, Any], *, seen: str, by: Author, now: datetime) -> bool:
    """Change a board that still is as it was `seen`, by its stamp. Return whether anything changed.

    Its screens follow within two seconds.
    """
    with transaction.atomic():
        board = Board.objects.select_for_update().get(pk=board.pk)
        if board.stamp != seen:
            raise BoardChanged(board)
        before = _told(board)
        for name in FIELDS:
            setattr(board, name, values[name])
        after = _told(board)
        if before == after:
            return False
        board.changed_by, board.changed_at = by.name, now
        board.save()
        changed = [name for name in after if before[name] != after[name]]
        told = ("board", *changed)
        note(by, "change_board", before={n: before[n] for n in told}, after={n: after[n] for n in told}, result=board)
    return True


def remove_board(board: Board, *, by: Author) -> None:
    """Remove a board with its links; its screens close."""
    with transaction.atomic():
        for other in Board.objects.all():
            if board.pk in other.rotation:
                other.rotation = [key for key in other.rotation if key != board.pk]
                other.save(update_fields=["rotation"])
        links_open = links.count_open(board, timezone.now())
        note(by, "remove_board", before=_told(board) | {"links": links_open}, result=board)
        board.delete()


def _told(board: Board) -> dict[str, Any]:
    names = dict(Board.objects.filter(pk__in=board.rotation).values_list("pk", "name"))
    told = {name: getattr(board, name) for name in FIELDS}
    return {
        "board": board.slug,
        **told,
        "globs": [str(glob) for glob in board.globs],
        "rotation": [names[key] for key in board.rotation if key in names],
    }
