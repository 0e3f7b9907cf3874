"""Boards for screens, and the links that open them: list, make, change and remove them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from ninja import Router
from pydantic import Field, StrictInt, StrictStr

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.names import findable
from pqadmin.accounts.rights import Right
from pqadmin.api.administration import schemas
from pqadmin.api.answers import address, answer, change, tagged
from pqadmin.api.authorization import administer, allow
from pqadmin.api.bodies import Body, invalid
from pqadmin.api.parameters import IfMatch, RowId, seen_tag
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.files.shapes import Shape, time_shape
from pqadmin.site_audit import Author
from pqadmin.store import get_store
from pqadmin.wall import board_changes, links
from pqadmin.wall.board_list import SeenBoard, alone, listed
from pqadmin.wall.forms import FIELDS, MAX_GLOBS, MAX_ROTATION, BoardForm, LinkForm
from pqadmin.wall.models import FEWEST_SECONDS, MOST_SECONDS, Board, Link
from queues.admin import check_glob

router = Router(tags=["Administration"])

_Order = Literal["worst", "name", "depth"]
_Density = Literal["far", "middle", "near"]
_Theme = Literal["dark", "light", "auto"]


class ChangedBoard(Body):
    """What of a board changes; what is not named stays."""

    name: StrictStr = Field("")
    globs: list[StrictStr] = Field(
        ["*"], max_length=MAX_GLOBS, description="Names of queues, or patterns such as `orders:*`."
    )
    order: _Order = Field("worst", description="Of the tiles; a queue in trouble comes first in each.")
    density: _Density = Field("far", description="From how far it is read: up to 12, 24 or 40 tiles.")
    theme: _Theme = "dark"
    language: StrictStr = Field("", description="A code such as `en`; empty: as the screen's browser asks.")
    rotation: list[StrictStr] = Field(
        [], max_length=MAX_ROTATION, description="The boards that it takes turns with, by their addresses."
    )
    seconds: StrictInt = Field(30, ge=FEWEST_SECONDS, le=MOST_SECONDS, description="For which each is shown.")


class NewBoard(ChangedBoard):
    """A board to make."""

    name: StrictStr
    slug: StrictStr = Field("", description="Its address below /wall/, for good; empty: made from the name.")


class NewLink(Body):
    """A link to make."""

    label: StrictStr = Field(description="Which screen it is for.")


@router.get("/boards", operation_id="list_boards", summary="List boards", response=schemas.Boards)
@in_thread
def list_boards(request: ApiRequest) -> HttpResponse:
    """Return the boards that show a queue which the caller sees."""
    scope = allow(request, Verb.READ, Right.READ)
    seen = listed(scope, scope.of_those(get_store().directory()))
    return answer({"boards": [_seen_shape(each) for each in seen]})


@router.get("/boards/{board}", operation_id="get_board", summary="Look at a board", response=schemas.BoardInFull)
@in_thread
def get_board(request: ApiRequest, board: str) -> HttpResponse:
    """Return a board with its links; for admins."""
    _administer(request)
    found = _board(board)
    made = {**_shape(found), "links": [_link_shape(link) for link in found.links.all()]}
    return answer(made, headers=tagged(found.stamp))


@router.post("/boards", operation_id="make_board", summary="Make a board", response={201: schemas.Board})
@in_thread
def make_board(request: ApiRequest, body: NewBoard) -> HttpResponse:
    """Make a board. All changes of boards take an admin: a session, or a token with `administer` and `read`."""
    _administer(request)

    def make(by: Author) -> tuple[Board, Shape]:
        values = _values(None, body.model_dump())
        return board_changes.make_board(values, by=by, now=datetime.now(UTC)), {}

    return change(request, make, _shape, status=201, where=lambda made: address("boards", str(made["board"])))


@router.patch("/boards/{board}", operation_id="change_board", summary="Change a board", response=schemas.Board)
@in_thread
def change_board(request: ApiRequest, board: str, body: ChangedBoard, if_match: IfMatch = None) -> HttpResponse:
    """Change a board; its screens follow within two seconds."""
    _administer(request)
    changes = body.model_dump(include=body.model_fields_set)

    def perform(by: Author) -> tuple[Board, Shape]:
        with transaction.atomic():  # what is not named stays as it is then
            found = _board(board, Board.objects.select_for_update())
            seen = seen_tag(if_match) or found.stamp
            try:
                values = _values(found, changes)
                board_changes.change_board(found, values, seen=seen, by=by, now=datetime.now(UTC))
            except board_changes.BoardChanged:
                words = "The board was changed since you saw it: nothing was changed."
                raise Problem("SettingsChanged", words) from None
            return _board(board), {}

    return change(request, perform, _shape)


@router.delete("/boards/{board}", operation_id="remove_board", summary="Remove a board", response=schemas.BoardRemoved)
@in_thread
def remove_board(request: ApiRequest, board: str) -> HttpResponse:
    """Remove a board with its links; its screens close."""
    _administer(request)

    def remove(by: Author) -> tuple[str, Shape]:
        board_changes.remove_board(_board(board), by=by)
        return board, {}

    return change(request, remove, lambda _: {"board": board})


@router.post(
    "/boards/{board}/links", operation_id="mint_link", summary="Make a link", response={201: schemas.LinkWithAddress}
)
@in_thread
def mint_link(request: ApiRequest, board: str, body: NewLink) -> HttpResponse:
    """Make a link that lets one screen open the board without a login, until it is revoked."""
    _administer(request)

    def mint(by: Author) -> tuple[Link, Shape]:
        form = LinkForm({"label": body.label})
        _refuse_wrong(form)
        link, token, code = links.mint(_board(board), form.cleaned_data["label"], by=by, now=datetime.now(UTC))
        wall = request.build_absolute_uri(reverse("wall:wall", args=[board]))
        return link, {"address": f"{wall}?token={token}", "code": code}

    return change(request, mint, _link_shape, secrets=["address", "code"], status=201)


@router.delete("/boards/{board}/links/{id}", operation_id="revoke_link", summary="Revoke a link", response=schemas.Link)
@in_thread
def revoke_link(request: ApiRequest, board: str, id: RowId) -> HttpResponse:
    """Revoke a link: its screen closes within a second. One that was revoked before stays as it is."""
    _administer(request)

    def revoke(by: Author) -> tuple[Link, Shape]:
        link = _link(board, id)
        if not links.revoke(link, by=by, now=datetime.now(UTC)):
            link = _link(board, id)
        return link, {}

    return change(request, revoke, _link_shape)


def _administer(request: ApiRequest) -> None:
    """Raise what refuses a change of boards: a link shows queues, so a token has to read them itself."""
    allow(request, Verb.READ, Right.READ)
    administer(request)


def _board(slug: str, boards: "QuerySet[Board] | None" = None) -> Board:
    board = (Board.objects.all() if boards is None else boards).filter(slug=findable(slug)).first()
    if board is None:
        raise Problem("NotFound", "There is no board of this address.")
    return board


def _link(slug: str, key: int) -> Link:
    link = Link.objects.select_related("board").filter(board=_board(slug), pk=key).first()
    if link is None:
        raise Problem("NotFound", "The board has no link of this id.")
    return link


def _values(board: Board | None, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a board as its form cleans them; raise the problem of wrong ones."""
    keys = dict(Board.objects.values_list("slug", "pk"))
    given = {} if board is None else {name: getattr(board, name) for name in FIELDS}
    given = {**given, "rotation": given.get("rotation", []), **changes}
    for glob in changes.get("globs", ()):
        check_glob(glob)  # the form takes them as one text, and would split this at blanks and commas
    if "rotation" in changes:
        words = ""
        if missing := [slug for slug in changes["rotation"] if slug not in keys]:
            words = f"there is no board {missing[0]!r}"
        elif board is not None and board.slug in changes["rotation"]:
            words = "a board takes turns with other boards, not with itself"
        if words:
            raise invalid([{"in": "body", "field": "rotation", "message": words}])
        given["rotation"] = [keys[slug] for slug in changes["rotation"]]
    typed = {**given, "globs": "\n".join(given["globs"]), "rotation": list(map(str, given["rotation"]))}
    form = BoardForm(board=board, data=typed)
    _refuse_wrong(form)
    return form.cleaned_data


def _refuse_wrong(form: BoardForm | LinkForm) -> None:
    wrong = [
        {"in": "body", "field": name, "message": str(message)}
        for name, messages in form.errors.items()
        for message in messages
    ]
    if wrong:
        raise invalid(wrong)


def _shape(board: Board) -> Shape:
    """Describe a board to an admin."""
    return _seen_shape(alone(board, list(get_store().directory())))


def _seen_shape(seen: SeenBoard) -> Shape:
    board = seen.board
    return {
        "board": board.slug,
        **{name: getattr(board, name) for name in FIELDS},
        "globs": list(seen.globs),
        "queues": seen.queues,
        "rotation": [other.slug for other in seen.others],
        "screens": seen.screens,
        "changed_by": board.changed_by,
        "changed_at": time_shape(board.changed_at),
    }


def _link_shape(link: Link) -> Shape:
    times = {name: time_shape(getattr(link, name)) for name in ("made_at", "used_at", "seen_at", "revoked_at")}
    return {
        "id": link.pk,
        "label": link.label,
        "state": links.state_of(link, datetime.now(UTC)),
        "made_by": link.made_by,
        "seen_from": link.seen_from,
        "revoked_by": link.revoked_by,
        **times,
    }
