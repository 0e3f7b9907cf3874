"""Pages of boards and their links: admins change them, readers see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.db import IntegrityError
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import Scope, scope_of
from pqadmin.display.addresses import leave
from pqadmin.live.monitor import get_monitor
from pqadmin.pages import act_view, once, toasts
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.wall import deeds
from pqadmin.wall.deeds import BoardChanged
from pqadmin.wall.forms import MAX_GLOBS, BoardForm, LinkForm, parse_globs
from pqadmin.wall.links import UNUSED_FOR
from pqadmin.wall.models import Board, Link
from queues.errors import QueueError, StoreError, display_name

#: Names that a preview lists.
_LISTED = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Which queues patterns choose now."""

    total: int
    names: tuple[str, ...]
    more: int
    wrong: str = ""


@require_safe
@require(Right.READ)
def boards(request: HttpRequest) -> HttpResponse:
    """List the boards."""
    scope = scope_of(request.user)
    names = _names(scope)
    in_use = Count("links", filter=Q(links__revoked_at=None, links__used_at__isnull=False))
    all_boards = list(Board.objects.annotate(screens=in_use))
    counts = {board.pk: _count(board.globs, names) for board in all_boards}
    # A board of other people's queues alone is not there: not even its name.
    there = [board for board in all_boards if scope.everything or counts[board.pk]]
    by_key = {board.pk: board for board in there}
    lines = [
        {
            "board": board,
            "globs": board.globs if scope.everything else (),
            "queues": counts[board.pk],
            "others": [by_key[key].name for key in board.rotation if key in by_key],
            "screens": board.screens,
        }
        for board in there
    ]
    return render(request, "wall/boards.html", {"section": "boards", "lines": lines})


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ADMIN, harmless=lambda request: "look" in request.POST)
def make(request: HttpRequest) -> HttpResponse:
    """Make a board."""
    form = BoardForm(request.POST) if request.method == "POST" and "look" not in request.POST else None
    context = _form_context(request, None, form)
    if form is None:
        return render(request, "wall/board.html", context)
    if not form.is_valid():
        return act_view.answer(request, "wall/board.html", context, refusal=act_view.invalid(form))
    try:
        with once.once(request, "make-board") as sending:
            board = deeds.make_board(form.cleaned_data, by=request.user.get_username(), now=datetime.now(UTC))
            sending.answer = reverse("wall:change", args=[board.slug])
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, reverse("wall:boards"))
    except IntegrityError:  # another board took the address since it was looked up
        form.add_error("slug", _("Another board has this address."))
        return act_view.answer(request, "wall/board.html", context, refusal=act_view.invalid(form))
    except once.FormRefused:
        return act_view.answer(request, "wall/board.html", context, refusal=act_view.stale_form())
    except (QueueError, StoreError) as error:
        return act_view.answer(request, "wall/board.html", context, refusal=explain(error))
    toasts.done(
        request,
        _("The board is there. Make a link to show it on a screen."),
        label=_("Open it"),
        link=reverse("wall:wall", args=[board.slug]),
    )
    return leave(sending.answer)


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ADMIN, harmless=lambda request: "look" in request.POST)
def change(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a board, and see its links."""
    board = get_object_or_404(Board, slug=slug)
    form = BoardForm(request.POST, board=board) if request.method == "POST" and "look" not in request.POST else None
    context = _form_context(request, board, form)
    if form is None:
        return render(request, "wall/board.html", context)
    if not form.is_valid():
        return act_view.answer(request, "wall/board.html", context, refusal=act_view.invalid(form))
    try:
        changed = deeds.change_board(
            board,
            form.cleaned_data,
            seen=request.POST.get("seen", ""),
            by=request.user.get_username(),
            now=datetime.now(UTC),
        )
    except BoardChanged as meanwhile:
        return _both(request, meanwhile.board, form)
    except (QueueError, StoreError) as error:
        return act_view.answer(request, "wall/board.html", context, refusal=explain(error))
    toasts.done(request, _("Changed; its screens follow.") if changed else _("Nothing was different; nothing changed."))
    return leave(reverse("wall:change", args=[slug]))


def _both(request: HttpRequest, board: Board, form: BoardForm) -> HttpResponse:
    """Show the form again as it was typed, beside the stored board; sending it again keeps what was typed."""
    context = _form_context(request, board, form) | {"theirs": _differing(board, form), "seen": board.stamp}
    refusal = Refusal(
        title=_("The board has changed meanwhile"),
        text=_("Nothing of yours was saved yet."),
        advice=_("The form holds what you typed. Look at what it is now and save again."),
        status=409,
    )
    return act_view.answer(request, "wall/board.html", context, refusal=refusal)


def _differing(board: Board, form: BoardForm) -> list[tuple[str, str, str]]:
    names = {other.pk: other.name for other in form.others}

    def shown(field: str, value: Any) -> str:
        if field == "globs":
            return "  ".join(value)
        if field == "rotation":
            return ", ".join(names[key] for key in value if key in names) or "–"
        if field == "language":
            return dict(_languages())[value]
        chosen = {"order": Board.Order, "density": Board.Density, "theme": Board.Theme}.get(field)
        return str(value if chosen is None else chosen(value).label)

    return [
        (str(label), shown(field, form.cleaned_data[field]), shown(field, getattr(board, field)))
        for field, label in {
            "name": _("Name"),
            "globs": _("Queues"),
            "order": _("Order"),
            "density": _("Read from"),
            "theme": _("Theme"),
            "language": _("Language"),
            "rotation": _("Take turns with"),
            "seconds": _("Each for"),
        }.items()
        if form.cleaned_data[field] != getattr(board, field)
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@require(Right.ADMIN)
def remove(request: HttpRequest, slug: str) -> HttpResponse:
    """Remove a board after one question."""
    board = get_object_or_404(Board, slug=slug)
    context = {"section": "boards", "board": board, "screens": board.links.filter(revoked_at=None).count()}
    if request.method != "POST":
        return render(request, "wall/remove.html", context)
    try:
        deeds.remove_board(board, by=request.user.get_username())
    except (QueueError, StoreError) as error:
        return act_view.answer(request, "wall/remove.html", context, refusal=explain(error))
    toasts.done(request, _("Removed the board %(name)s. Its screens have closed.") % {"name": display_name(board.name)})
    return leave(reverse("wall:boards"))


@require_POST
@require(Right.ADMIN)
def new_id(request: HttpRequest, slug: str) -> HttpResponse:
    """Make a link and show its token: this once."""
    board = get_object_or_404(Board, slug=slug)
    back = reverse("wall:change", args=[slug])
    form = LinkForm(request.POST)
    context = _form_context(request, board, None, link_form=form)
    if not form.is_valid():
        return act_view.answer(request, "wall/board.html", context, refusal=act_view.invalid(form))
    try:
        with once.once(request, "mint-link") as sending:
            minted = deeds.mint_link(
                board, form.cleaned_data["label"], by=request.user.get_username(), now=datetime.now(UTC)
            )
            sending.answer = back
    except once.AlreadySent as sent:
        return act_view.replayed(request, sent, back)
    except once.FormRefused:
        return act_view.answer(request, "wall/board.html", context, refusal=act_view.stale_form())
    except (QueueError, StoreError) as error:
        return act_view.answer(request, "wall/board.html", context, refusal=explain(error))
    wall = request.build_absolute_uri(reverse("wall:wall", args=[slug]))
    shown = {"section": "boards", "board": board, "link": minted.link, "address": f"{wall}?token={minted.token}"}
    answer = render(request, "wall/minted.html", shown)
    answer.headers["Referrer-Policy"] = "no-referrer"
    return answer


@require_POST
@require(Right.ADMIN)
def revoke(request: HttpRequest, slug: str, key: int) -> HttpResponse:
    """Revoke a link: its screen closes within a second."""
    link = get_object_or_404(Link.objects.select_related("board"), board__slug=slug, pk=key)
    try:
        done = deeds.revoke_link(link, by=request.user.get_username(), now=datetime.now(UTC))
    except (QueueError, StoreError) as error:
        refusal = explain(error)
        toasts.failed(request, f"{refusal.title} {refusal.text}")
        return leave(reverse("wall:change", args=[slug]))
    label = {"label": display_name(link.label)}
    toasts.done(
        request,
        _("Revoked the link of “%(label)s”; its screen has closed.") % label
        if done
        else _("The link of “%(label)s” was revoked before.") % label,
    )
    return leave(reverse("wall:change", args=[slug]))


@require_safe
@require(Right.ADMIN)
def preview(request: HttpRequest) -> HttpResponse:
    """Show which queues the patterns choose, while they are typed."""
    found = _preview(request.GET.get("globs", "")[:20_000], scope_of(request.user))
    return render(request, "wall/_preview.html", {"preview": found})


def _form_context(
    request: HttpRequest,
    board: Board | None,
    form: BoardForm | None,
    *,
    link_form: LinkForm | None = None,
) -> dict[str, Any]:
    typed: Mapping[str, Any] = request.POST if "globs" in request.POST else _values(board)
    globs = str(typed["globs"])
    rotation = request.POST.getlist("rotation") if "globs" in request.POST else [str(k) for k in typed["rotation"]]
    now = datetime.now(UTC)
    form = form or BoardForm(board=board)
    return {
        "section": "boards",
        "board": board,
        # A form that is shown again goes on being about the board as it was first seen.
        "seen": request.POST.get("seen", "" if board is None else board.stamp),
        "typed": typed,
        "form": form,
        "orders": Board.Order.choices,
        "densities": [
            (Board.Density.FAR, _("Far"), _("5 m and more: up to 12 tiles")),
            (Board.Density.MIDDLE, _("Middle"), _("about 3 m: up to 24")),
            (Board.Density.NEAR, _("Near"), _("a desk: up to 40")),
        ],
        "themes": Board.Theme.choices,
        "languages": _languages(),
        "rotation": set(rotation),
        "others": [(str(other.pk), other.name) for other in form.others],
        "preview": _preview(globs, scope_of(request.user)),
        "form_number": once.number(request, "make-board"),
        "links": [_link_line(link, now) for link in board.links.all()] if board is not None else [],
        "link_form": link_form,
        "link_number": once.number(request, "mint-link"),
        "max_globs": MAX_GLOBS,
        "now": now,
    }


def _languages() -> list[tuple[str, str]]:
    return [("", _("As the screen's browser asks")), *settings.LANGUAGES]


def _values(board: Board | None) -> dict[str, Any]:
    if board is None:
        fresh = Board()
        return {
            "name": "", "slug": "", "globs": "*", "order": fresh.order, "density": fresh.density,
            "theme": fresh.theme, "language": fresh.language, "seconds": fresh.seconds, "rotation": [],
        }  # fmt: skip
    return {
        "name": board.name,
        "slug": board.slug,
        "globs": "\n".join(board.globs),
        "order": board.order,
        "density": board.density,
        "theme": board.theme,
        "language": board.language,
        "seconds": board.seconds,
        "rotation": board.rotation,
    }


def _link_line(link: Link, now: datetime) -> dict[str, Any]:
    if link.revoked_at is not None:
        state = "revoked"
    elif link.used_at is not None:
        state = "used"
    else:
        state = "waiting" if now - link.made_at < UNUSED_FOR else "expired"
    return {"link": link, "state": state, "until": link.made_at + UNUSED_FOR}


def _preview(text: str, scope: Scope) -> Preview:
    try:
        globs = parse_globs(text)
    except forms.ValidationError as error:
        return Preview(total=0, names=(), more=0, wrong=" ".join(error.messages))
    found = Scope.of_globs(globs).of_those(_names(scope)) if globs else []
    listed = tuple(display_name(name) for name in found[:_LISTED])
    return Preview(total=len(found), names=listed, more=len(found) - len(listed))


def _names(scope: Scope) -> list[str]:
    monitor = get_monitor()
    monitor.refresh()
    return scope.of_those(monitor.board.directory)


def _count(globs: list[str], names: list[str]) -> int:
    return len(Scope.of_globs(globs).of_those(names))
