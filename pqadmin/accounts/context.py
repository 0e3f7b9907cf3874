"""What every template knows about the person and the site."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from pqadmin.accounts import arming
from pqadmin.accounts.rights import Right
from pqadmin.accounts.scope import scope_of
from pqadmin.conf.proxy import UNDECLARED
from queues.admin import canonical_name


def account(request: HttpRequest) -> dict[str, Any]:
    """Return `role`, `partial`, `can_read`, `can_act`, `can_admin`, `arming`, `environment` and more.

    On the pages of a queue, the role and the right to act are those on that queue; elsewhere those that hold somewhere.
    """
    scope, queue = scope_of(getattr(request, "user", None) or AnonymousUser()), _queue(request)
    return {
        "role": scope.role if queue is None else scope.role_on(queue),
        "partial": bool(scope.grants),
        "can_read": scope.anywhere(Right.READ),
        "can_act": scope.anywhere(Right.ACT) if queue is None else scope.can(Right.ACT, queue),
        "can_admin": scope.role.has(Right.ADMIN),
        "arming": arming.window(request),
        "environment": settings.PQADMIN_ENVIRONMENT,
        "undeclared_proxy": getattr(request, "scope", {}).get(UNDECLARED, ""),
    }


def _queue(request: HttpRequest) -> str | None:
    name = request.resolver_match.kwargs.get("name") if request.resolver_match else None
    return canonical_name(name) if isinstance(name, str) else None
