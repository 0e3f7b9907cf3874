"""Pages of boards and their links: admins change them, readers see them."""

from collections.abc import Mapping
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
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import Scope, scope_of
from pqadmin.live.monitor import get_monitor
from pqadmin.pages import once, toasts
from pqadmin.pages.action_view import ActionView
from pqadmin.pages.refusals import NotPossible, Refusal
from pqadmin.wall import deeds, links
from pqadmin.wall.deeds import BoardChanged
from pqadmin.wall.forms import MAX_GLOBS, BoardForm, LinkForm, parse_globs
from pqadmin.wall.models import Board, Link
from queues.errors import display_name

#: Names that a preview lists.
_LISTED = 24


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


class BoardView(ActionView):
    """Makes or changes a board; its page shows the links too."""

    right, section = Right.ADMIN, "boards"
    template_name = "wall/board.html"
    form_class: Any = BoardForm
    preview_button = "look"
    board: Board | None = None
    link_form: LinkForm | None = None

    @property
    def subject(self) -> str:
        """The board."""
        return str(self.kwargs.get("slug", ""))

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with; one that only looks is not judged."""
        kwargs = {**super().get_form_kwargs(), "board": self.board}
        if self.previews(self.request):
            kwargs = {name: value for name, value in kwargs.items() if name not in ("data", "files")}
        return kwargs

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        context = super().get_context_data(**more)
        form = context["form"] if isinstance(context["form"], BoardForm) else None
        shown = _form_context(self.request, self.board, form, link_form=self.link_form)
        return {**shown, **context, "form": shown["form"]}


class MakeView(BoardView):
    """Makes a board."""

    action = "make-board"

    @property
    def home(self) -> str:
        """The list of boards."""
        return reverse("wall:boards")

    def perform(self, form: BoardForm) -> str:
        """Make the board."""
        self.slug = form.cleaned_data["slug"]
        try:
            board = deeds.make_board(form.cleaned_data, by=self.author, now=datetime.now(UTC))
        except IntegrityError:  # another board took the address since it was looked up
            raise NotPossible(_("Another board has this address."), "slug") from None
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

    def load(self) -> None:
        """Read the board."""
        self.board = get_object_or_404(Board, slug=self.subject)

    def perform(self, form: Any) -> str | HttpResponse:
        """Change the board, if it is as it was shown."""
        assert self.board is not None
        seen = self.request.POST.get("seen", "")
        try:
            changed = deeds.change_board(
                self.board, form.cleaned_data, seen=seen, by=self.author, now=datetime.now(UTC)
            )
        except BoardChanged as meanwhile:
            return self.both(form, meanwhile.board)
        words = _("Changed; its screens follow.") if changed else _("Nothing was different; nothing changed.")
        toasts.done(self.request, words)
        return self.home

    def both(self, form: BoardForm, board: Board) -> HttpResponse:
        """Show the form as it was typed, beside the stored board; sending it again keeps what was typed."""
        refusal = Refusal(
            title=_("The board has changed meanwhile"),
            text=_("Nothing of yours was saved yet."),
            advice=_("The form holds what you typed. Look at what it is now and save again."),
        )
        self.board = board
        return self.show(form, refusal, theirs=_differing(board, form), seen=board.stamp)


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


class RemoveView(ActionView):
    """Removes a board after one question."""

    right, section = Right.ADMIN, "boards"
    action, template_name = "remove-board", "wall/remove.html"
    board: Board

    @property
    def subject(self) -> str:
        """The board."""
        return str(self.kwargs["slug"])

    @property
    def home(self) -> str:
        """The list of boards."""
        return reverse("wall:boards")

    def load(self) -> None:
        """Read the board."""
        self.board = get_object_or_404(Board, slug=self.subject)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the question shows."""
        screens = self.board.links.filter(revoked_at=None).count()
        return super().get_context_data(board=self.board, screens=screens, **more)

    def perform(self, form: Any) -> str:
        """Remove the board."""
        deeds.remove_board(self.board, by=self.author)
        words = _("Removed the board %(name)s. Its screens have closed.")
        toasts.done(self.request, words % {"name": display_name(self.board.name)})
        return self.home


class MintView(ChangeView):
    """Makes a link and shows its token: this once."""

    http_method_names = ["post"]
    action, form_class = "mint-link", LinkForm

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with."""
        return {name: value for name, value in super().get_form_kwargs().items() if name != "board"}

    def show(self, form: Any = None, refusal: Refusal | None = None, **more: Any) -> HttpResponse:
        """Show the form on the page of the board."""
        self.link_form = form
        return super().show(form, refusal, **more)

    def perform(self, form: LinkForm) -> HttpResponse:
        """Make the link."""
        assert self.board is not None
        link, token = links.mint(self.board, form.cleaned_data["label"], by=self.author, now=datetime.now(UTC))
        wall = self.request.build_absolute_uri(reverse("wall:wall", args=[self.subject]))
        context = {"section": "boards", "board": self.board, "link": link}
        answer = render(self.request, "wall/minted.html", {**context, "address": f"{wall}?token={token}"})
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer


class RevokeView(ActionView):
    """Revokes a link: its screen closes within a second."""

    http_method_names = ["post"]
    right, action = Right.ADMIN, "revoke-link"
    link: Link

    def load(self) -> None:
        """Read the link."""
        with_boards = Link.objects.select_related("board")
        self.link = get_object_or_404(with_boards, board__slug=self.kwargs["slug"], pk=self.kwargs["key"])

    @property
    def subject(self) -> str:
        """The link."""
        return str(self.kwargs["key"])

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
        "links": [_link_line(request, link, now) for link in board.links.all()] if board is not None else [],
        "link_form": link_form,
        "link_hidden": {once.FIELD: once.number(request, f"mint-link:{'' if board is None else board.slug}")},
        "max_globs": MAX_GLOBS,
        "now": now,
    }


def _languages() -> list[tuple[str, str]]:
    return [("", _("As the screen's browser asks")), *settings.LANGUAGES]


def _values(board: Board | None) -> dict[str, Any]:
    shown = board or Board(globs=["*"])
    return {name: getattr(shown, name) for name in ("slug", *deeds.FIELDS)} | {"globs": "\n".join(shown.globs)}


def _link_line(request: HttpRequest, link: Link, now: datetime) -> dict[str, Any]:
    if link.revoked_at is not None:
        state = "revoked"
    elif link.used_at is not None:
        state = "used"
    else:
        state = "waiting" if now - link.made_at < links.UNUSED_FOR else "expired"
    hidden = {once.FIELD: once.number(request, f"revoke-link:{link.pk}")}
    return {"link": link, "state": state, "until": link.made_at + links.UNUSED_FOR, "hidden": hidden}


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


def _count(globs: list[str], names: list[str]) -> int:
    return len(Scope.of_globs(globs).of_those(names))
