"""The list of people, by name."""

from collections.abc import Sequence

from django.contrib.auth.models import User

from pqadmin.accounts.names import findable


def page(text: str, *, after: str, limit: int) -> tuple[Sequence[User], str | None]:
    """Return people with a text in their names, behind a name, with their roles; and the name behind which more are."""
    found = User.objects.filter(username__icontains=findable(text), username__gt=findable(after))
    some = list(found.order_by("username").prefetch_related("groups", "grants")[: limit + 1])
    return some[:limit], some[limit - 1].username if len(some) > limit else None
