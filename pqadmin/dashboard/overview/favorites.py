"""Favorites: queues that a person wants to have at hand. Kept with the person, set by a form that needs no script."""

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pqadmin.accounts.models import Preference
from pqadmin.accounts.roles import Right, require
from pqadmin.accounts.scope import scope_of
from pqadmin.display.addresses import leave_for_next
from pqadmin.live.monitor import get_monitor

#: More are no favorites; the oldest ones leave.
MOST = 500
_MAX_DIGITS = 20


def of(user: User | AnonymousUser) -> frozenset[int]:
    """Return the ids of the user's favorite queues."""
    if not isinstance(user, User):
        return frozenset()
    found = Preference.objects.filter(user=user).values_list("favorites", flat=True).first()
    return frozenset(one for one in found or () if isinstance(one, int))


@require_POST
@require(Right.READ)
def choose(request: HttpRequest) -> HttpResponse:
    """Make a queue a favorite, or one no longer, and go back to the page it was chosen on."""
    asked = request.POST.get("on") or request.POST.get("off") or ""
    if not (asked.isascii() and asked.isdigit() and len(asked) <= _MAX_DIGITS):
        return HttpResponseBadRequest(_("Which queue?"))
    queue_id, user = int(asked), request.user
    assert isinstance(user, User)
    with transaction.atomic():
        kept, _new = Preference.objects.select_for_update().get_or_create(user=user)
        rest = [one for one in kept.favorites if one != queue_id]
        # What one may not see cannot be made a favorite, so that its existence stays hidden.
        if request.POST.get("on") and queue_id in get_monitor().board.in_sight(scope_of(user)):
            rest.append(queue_id)
        kept.favorites = rest[-MOST:]
        kept.save(update_fields=["favorites"])
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204)
    return leave_for_next(request)
