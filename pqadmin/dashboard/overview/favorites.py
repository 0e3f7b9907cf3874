"""What a person chose on the overview: favorite queues, and groups that are shut. Set by forms that need no script."""

from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pqadmin.accounts.models import Preference
from pqadmin.accounts.roles import Right, require, signed_in
from pqadmin.accounts.scope import scope_of
from pqadmin.display.addresses import leave_for_next
from pqadmin.live.monitor import get_monitor

#: More are no favorites, and more groups are not shut; the oldest ones leave.
MOST = 500
_MAX_DIGITS = 20
#: Characters of a group's label as shown.
_MAX_LABEL = 2_000


class Chosen(NamedTuple):
    """What a user chose: the ids of favorite queues, and the labels of the groups that are shut."""

    stars: frozenset[int] = frozenset()
    shut: frozenset[str] = frozenset()


def of(user: User | AnonymousUser) -> Chosen:
    """Return what the user chose."""
    if not isinstance(user, User):
        return Chosen()
    stars, shut = Preference.objects.filter(user=user).values_list("favorites", "folded").first() or ((), ())
    return Chosen(
        frozenset(one for one in stars if isinstance(one, int)), frozenset(one for one in shut if isinstance(one, str))
    )


@require_POST
@require(Right.READ)
def choose(request: HttpRequest) -> HttpResponse:
    """Make a queue a favorite, or one no longer, and go back to the page it was chosen on."""
    asked = request.POST.get("on") or request.POST.get("off") or ""
    if not (asked.isascii() and asked.isdigit() and len(asked) <= _MAX_DIGITS):
        return HttpResponseBadRequest(_("Which queue?"))
    queue_id, user = int(asked), signed_in(request)
    with transaction.atomic():
        kept, _new = Preference.objects.select_for_update().get_or_create(user=user)
        rest = [one for one in kept.favorites if one != queue_id]
        # What one may not see cannot be made a favorite, so that its existence stays hidden.
        if request.POST.get("on") and queue_id in get_monitor().board.in_sight(scope_of(user)):
            rest.append(queue_id)
        kept.favorites = rest[-MOST:]
        kept.save(update_fields=["favorites"])
    return _back(request)


@require_POST
@require(Right.READ)
def fold(request: HttpRequest) -> HttpResponse:
    """Shut or open a group of the overview, and go back to the page it was chosen on."""
    shut = "shut" in request.POST
    label, user = request.POST.get("shut" if shut else "open", "")[:_MAX_LABEL], signed_in(request)
    with transaction.atomic():
        kept, _new = Preference.objects.select_for_update().get_or_create(user=user)
        rest = [one for one in kept.folded if one != label]
        kept.folded = [*rest, label][-MOST:] if shut else rest
        kept.save(update_fields=["folded"])
    return _back(request)


def _back(request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=204) if request.headers.get("HX-Request") else leave_for_next(request)
