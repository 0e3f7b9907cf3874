"""The wall: a page for a screen, opened by a link without a login, or by signed-in people."""

import contextlib
import logging
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from pqadmin.accounts import throttle
from pqadmin.accounts.rights import Right, RightMissing
from pqadmin.accounts.roles import role_of
from pqadmin.accounts.scope import Scope, scope_of
from pqadmin.display import format as write
from pqadmin.display.addresses import leave
from pqadmin.live.monitor import get_monitor
from pqadmin.pages import error_pages
from pqadmin.store import store_now
from pqadmin.wall import frame_json, links
from pqadmin.wall.picture import Picture, choose, cut
from pqadmin.wall.specs import Spec, read
from pqadmin.wall.tiles import BLANK, compact, counts_words, places, tile
from queues.errors import StoreError

log = logging.getLogger(__name__)

#: No address of a wall tells another site anything, least of all a token.
_HEADERS = {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"}
#: Says that a 404 is the site's own: a proxy answers one too, while the site is away.
_MISSING = ("X-Pqadmin-Wall", "missing")
#: Seconds after which a page that could not be made is asked for again.
_AGAIN = 15


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def wall(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a board. Turn a link's token, when its page's button is pressed, into the screen's cookie."""
    try:
        answer = _answer(request, slug)
    except Http404 as missing:
        answer = error_pages.page_not_found(request, missing)
        answer.headers[_MISSING[0]] = _MISSING[1]
    except (PermissionDenied, SuspiciousOperation):
        raise
    except Exception:
        answer = error_pages.server_error(request)
        if answer.status_code == 500:
            log.exception("a wall could not be shown")
        if request.method != "POST":
            answer.headers["Refresh"] = str(_AGAIN)  # a screen has no user to reload it
    for name, value in _HEADERS.items():
        answer.headers.setdefault(name, value)
    return answer


def _answer(request: HttpRequest, slug: str) -> HttpResponse:
    address = reverse("wall:wall", args=[slug])
    secret = request.COOKIES.get(links.COOKIE, "")
    token = (request.POST if request.method == "POST" else request.GET).get("token")
    if token is not None:
        fits = _redeem if request.method == "POST" else _offer
        answer = fits(request, slug, token[:200])
        if answer is not None:
            return answer
    spec = read(slug)
    link = None if spec is None else links.find(slug, secret)
    if (token is not None or request.method == "POST") and (link is not None or request.user.is_authenticated):
        return leave(address)  # a token never stays in the address bar
    if spec is not None and link is not None:
        answer = _show(request, spec, spec.scope, linked=True)
        links.note_seen(link, address=_client(request), now=timezone.now())
        links.set_cookie(request, answer, slug, secret)
        return answer
    if not request.user.is_authenticated:
        return _turn_away(request, address, token=token is not None, cookie=bool(secret))
    viewer = scope_of(request.user)
    if not viewer.anywhere(Right.READ):
        raise RightMissing(Right.READ, role_of(request.user))
    if spec is None:
        raise Http404
    return _show(request, _cut(spec, viewer), viewer, linked=False)


def _redeem(request: HttpRequest, slug: str, token: str) -> HttpResponse | None:
    """Use a token up and give the screen its cookie. None for a token that opens nothing."""
    fresh = links.redeem(slug, token, address=_client(request), now=timezone.now())
    if fresh is None:
        return None
    clean = leave(reverse("wall:wall", args=[slug]))
    links.set_cookie(request, clean, slug, fresh)
    return clean


def _offer(request: HttpRequest, slug: str, token: str) -> HttpResponse | None:
    """Show the button that uses a token up; None for a token that opens nothing.

    Opening the address changes nothing: chats and mail programs open it for a preview. The button is pressed by no
    script either, as some previews run these.
    """
    if not links.is_unused(slug, token, now=timezone.now()):
        return None
    context = {"address": reverse("wall:wall", args=[slug]), "token": token}
    answer = render(request, "wall/open.html", context)
    # With `no-referrer` browsers say of the form that it came from nowhere, and it would be refused.
    answer.headers["Referrer-Policy"] = "strict-origin"
    return answer


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def enter(request: HttpRequest) -> HttpResponse:
    """Take the short code of a link, typed on the screen, and lead to its board."""
    wrong, status = "", 200
    if request.method == "POST":
        address, now = _client(request), timezone.now()
        attempt = throttle.begin_code(address=address, now=now)
        fits = (
            links.redeem_code(request.POST.get("code", "")[:40], address=address, now=now) if attempt.allowed else None
        )
        if fits is not None:
            throttle.succeed(attempt)
            slug, secret = fits
            clean = leave(reverse("wall:wall", args=[slug]))
            links.set_cookie(request, clean, slug, secret)
            return clean
        wrong, status = _("This code opens nothing. It works once, within a day."), 422
        if attempt.retry_after is not None:
            wrong = _("Too many codes were tried. Try again in %(age)s.")
            wrong, status = wrong % {"age": write.age(attempt.retry_after.total_seconds())}, 429
    answer = render(request, "wall/enter.html", {"wrong": wrong}, status=status)
    answer.headers["X-Robots-Tag"] = "noindex"
    return answer


def _turn_away(request: HttpRequest, address: str, *, token: bool, cookie: bool) -> HttpResponse:
    """Refuse a request without access, in the same way whether the board exists or not."""
    if token or cookie:
        return render(request, "wall/closed.html", {"token": token}, status=403)
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        # A browser that comes from another site does not show its strict cookies; from this page it will.
        return render(request, "wall/to_wall.html", {"address": address})
    return redirect_to_login(request.path, resolve_url("accounts:login"))


def _cut(spec: Spec, viewer: Scope) -> Spec:
    """Return what a user may see of the board. One of other people's queues alone is not there."""
    if viewer.everything:
        return spec
    monitor = get_monitor()
    if monitor.board.empty:
        monitor.refresh()  # nothing was read yet
    left = cut(spec, monitor, viewer=viewer)
    if left is None:
        raise Http404
    return left


def _show(request: HttpRequest, spec: Spec, viewer: Scope, *, linked: bool) -> HttpResponse:
    monitor = get_monitor()
    with contextlib.suppress(StoreError):  # then with what is known: the page tells its age, and why, by itself
        monitor.refresh()
    now = store_now().timestamp()
    picture = choose(spec, monitor, viewer=viewer, now=now)
    blind = monitor.board.empty
    nothing = not picture.counts.queues and not blind
    more = {
        "link": linked,
        "blind": blind,
        "nothing": nothing,
        # Globs may name invisible queues; where boards take turns they would stay for the next one.
        "globs": spec.parts[0].globs if nothing and viewer.everything and len(spec.parts) == 1 else (),
    }
    with translation.override(spec.language or translation.get_language()):
        answer = render(request, "wall/wall.html", {**context_of(spec, picture, now), **more})
        answer.headers["Content-Language"] = translation.get_language() or ""
    return answer


def context_of(spec: Spec, picture: Picture, now: float) -> dict[str, Any]:
    """Return all that the page says."""
    moment = datetime.fromtimestamp(now, UTC)
    counts, rest, turn = picture.counts, picture.rest, picture.turn
    spots = list(places(picture.layout))
    tiles = [tile(row, moment, place) for row, place in zip(picture.rows, spots, strict=False)]
    return {
        "spec": spec,
        "part": picture.part,
        "revision": picture.revision,
        "release": frame_json.release(),
        "now": moment,
        "now_ms": int(now * 1000),
        "tiles": tiles,
        "blank": BLANK,
        "worst": counts.worst,
        "layout": picture.layout,
        "rows_wide": len(picture.layout.wide),
        "rows_high": len(picture.layout.high),
        "counts": counts,
        "queues_words": _("1 queue") if counts.queues == 1 else _("%(n)s queues") % {"n": write.number(counts.queues)},
        "trouble_words": counts_words(counts) if counts.queues else "",
        "rest": rest,
        "rest_place": spots[-1] if rest is not None else None,
        "rest_more": "" if rest is None else _("+%(n)s more") % {"n": write.number(rest.queues)},
        "rest_words": "" if rest is None else counts_words(rest),
        "rest_ready": "" if rest is None else _("%(n)s ready") % {"n": compact(rest.ready)},
        "next_words": ""
        if turn.until is None
        else _("next board in %(left)s") % {"left": write.countdown(turn.until - now)},
        "as_of": picture.as_of,
        "refresh": min(10, spec.seconds),
    }


def _client(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))
