"""Pages of boards and their links: admins change them, readers see them."""

from datetime import UTC, datetime
from typing import Any

import segno
from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import Scope, scope_of
from pqadmin.live.monitor import get_monitor
from pqadmin.pages import form_idempotency, toasts
from pqadmin.pages.action_view import ActionView
from pqadmin.pages.refusals import Refusal
from pqadmin.wall import board_changes, links
from pqadmin.wall.board_changes import BoardChanged
from pqadmin.wall.board_list import listed
from pqadmin.wall.forms import BoardForm, LinkForm, parse_globs
from pqadmin.wall.models import Board, Link
from queues.errors import display_name

#: Names that a preview lists.
_LISTED = 24


@require_safe
@require(Right.READ)
def boards(request: HttpRequest) -> HttpResponse:
    """List the boards."""
    scope = scope_of(request.user)
    return render(request, "wall/boards.html", {"section": "boards", "lines": listed(scope, _names(scope))})


class BoardView(ActionView):
    """Makes or changes a board; its page shows the links too."""

    right, section = Right.ADMIN, "boards"
    template_name, form_id = "wall/board.html", "board"
    subject_argument, home_page = "slug", "wall:boards"
    form_class: Any = BoardForm
    preview_button = "look"
    board: Board | None = None

    def load(self) -> None:
        """Read the board, if there is one."""
        self.board = get_object_or_404(Board, slug=self.subject) if self.subject else None

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with; one that only looks is not judged."""
        kwargs = {**super().get_form_kwargs(), "board": self.board}
        if self.previews(self.request):
            typed = kwargs.pop("data")
            kwargs |= {"files": None, "initial": {**typed.dict(), "rotation": typed.getlist("rotation")}}
        return kwargs

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows: the form of the board, and the links with the form for another one."""
        context, board, now = super().get_context_data(**more), self.board, datetime.now(UTC)
        sent = context["form"]
        form = sent if isinstance(sent, BoardForm) else BoardForm(board=board, auto_id="board-%s")
        return {
            "board": board,
            # A form that is shown again goes on being about the board as it was first seen.
            "seen": self.request.POST.get("seen", "" if board is None else board.stamp),
            "preview": _preview(str(form["globs"].value()), scope_of(self.request.user)),
            "links": [] if board is None else [_link_line(self.request, link, now) for link in board.links.all()],
            "link_form": sent if isinstance(sent, LinkForm) else LinkForm(auto_id="link-%s"),
            "link_hidden": {form_idempotency.FIELD: form_idempotency.number(self.request, f"mint-link:{self.subject}")},
            "now": now,
            **context,
            "form": form,
        }


class MakeView(BoardView):
    """Makes a board."""

    action = "make-board"

    def perform(self, form: BoardForm) -> str:
        """Make the board."""
        self.slug = form.cleaned_data["slug"]
        board = board_changes.make_board(form.cleaned_data, by=self.author, now=datetime.now(UTC))
        toasts.done(
            self.request,
            _("The board is there. Make a link to show it on a screen."),
            label=_("Open it"),
            link=reverse("wall:wall", args=[board.slug]),
        )
        return self.answer_of(None)

    def answer_of(self, result: Any) -> str:
        """Return the page of the board."""
        return reverse("wall:change", args=[self.slug])


class ChangeView(BoardView):
    """Changes a board."""

    action = "change-board"

    @property
    def home(self) -> str:
        """The page of the board."""
        return reverse("wall:change", args=[self.subject])

    def perform(self, form: Any) -> str | HttpResponse:
        """Change the board, if it is as it was shown."""
        assert self.board is not None
        seen = self.request.POST.get("seen", "")
        try:
            changed = board_changes.change_board(
                self.board, form.cleaned_data, seen=seen, by=self.author, now=datetime.now(UTC)
            )
        except BoardChanged as meanwhile:
            return self.both(form, meanwhile.board)
        words = _("Changed; its screens follow.") if changed else _("Nothing was different; nothing changed.")
        toasts.done(self.request, words)
        return self.home

    def both(self, form: BoardForm, board: Board) -> HttpResponse:
        """Show the form as it was typed, beside the stored board. Sending it again keeps what was typed."""
        refusal = Refusal(
            title=_("The board has changed meanwhile"),
            text=_("Nothing of yours was saved yet."),
            advice=_("The form holds what you typed. Look at what it is now and save again."),
        )
        self.board = board
        return self.show(form, refusal, theirs=form.differing(board), seen=board.stamp)


class RemoveView(ActionView):
    """Removes a board after one question."""

    right, section = Right.ADMIN, "boards"
    action, template_name = "remove-board", "wall/remove.html"
    subject_argument, home_page = "slug", "wall:boards"
    board: Board

    def load(self) -> None:
        """Read the board."""
        self.board = get_object_or_404(Board, slug=self.subject)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the question shows."""
        screens = links.count_open(self.board, datetime.now(UTC))
        return super().get_context_data(board=self.board, screens=screens, **more)

    def perform(self, form: Any) -> str:
        """Remove the board."""
        board_changes.remove_board(self.board, by=self.author)
        words = _("Removed the board %(name)s. Its screens have closed.")
        toasts.done(self.request, words % {"name": display_name(self.board.name)})
        return self.home


class MintView(ChangeView):
    """Makes a link and shows its token: this once."""

    http_method_names = ["post"]
    action, form_class, form_id = "mint-link", LinkForm, "link"

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with."""
        return {name: value for name, value in super().get_form_kwargs().items() if name != "board"}

    def perform(self, form: LinkForm) -> HttpResponse:
        """Make the link."""
        assert self.board is not None
        link, token, code = links.mint(self.board, form.cleaned_data["label"], by=self.author, now=datetime.now(UTC))
        wall = self.request.build_absolute_uri(reverse("wall:wall", args=[self.subject]))
        address = f"{wall}?token={token}"
        context = {
            "section": "boards",
            "board": self.board,
            "link": link,
            "address": address,
            "code": code,
            "enter": self.request.build_absolute_uri(reverse("wall:enter")),
            "picture": segno.make_qr(address, error="m").svg_inline(scale=4, border=4, dark="#000", light="#fff"),
        }
        answer = render(self.request, "wall/new_link.html", context)
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer


class RevokeView(ActionView):
    """Revokes a link: its screen closes within a second."""

    http_method_names = ["post"]
    right, action, subject_argument = Right.ADMIN, "revoke-link", "key"
    link: Link

    def load(self) -> None:
        """Read the link."""
        with_boards = Link.objects.select_related("board")
        self.link = get_object_or_404(with_boards, board__slug=self.kwargs["slug"], pk=self.kwargs["key"])

    @property
    def home(self) -> str:
        """The page of the board."""
        return reverse("wall:change", args=[self.kwargs["slug"]])

    def perform(self, form: Any) -> str:
        """Revoke the link."""
        done = links.revoke(self.link, by=self.author, now=datetime.now(UTC))
        words = _("Revoked the link of “%(label)s”; its screen has closed.")
        if not done:
            words = _("The link of “%(label)s” was revoked before.")
        toasts.done(self.request, words % {"label": display_name(self.link.label)})
        return self.home


@require_safe
@require(Right.ADMIN)
def preview(request: HttpRequest) -> HttpResponse:
    """Show which queues the patterns choose, while they are typed."""
    found = _preview(request.GET.get("globs", "")[:20_000], scope_of(request.user))
    return render(request, "wall/_preview.html", {"preview": found})


def _link_line(request: HttpRequest, link: Link, now: datetime) -> dict[str, Any]:
    hidden = {form_idempotency.FIELD: form_idempotency.number(request, f"revoke-link:{link.pk}")}
    return {
        "link": link,
        "state": links.state_of(link, now),
        "until": link.made_at + links.UNUSED_FOR,
        "hidden": hidden,
    }


def _preview(text: str, scope: Scope) -> dict[str, Any]:
    """Return which queues patterns choose now, or what is wrong with them."""
    try:
        globs = parse_globs(text)
    except forms.ValidationError as error:
        return {"total": 0, "wrong": " ".join(error.messages)}
    found = Scope.of_globs(globs).of_those(_names(scope)) if globs else []
    listed = [display_name(name) for name in found[:_LISTED]]
    return {"total": len(found), "names": listed, "more": len(found) - len(listed)}


def _names(scope: Scope) -> list[str]:
    monitor = get_monitor()
    monitor.refresh()
    return scope.of_those(monitor.board.directory)
