"""What every template knows about the person and the site."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from pqadmin.accounts.roles import Right, can, role_of


def account(request: HttpRequest) -> dict[str, Any]:
    """Return `role`, `can_read`, `can_act`, `can_admin` and `environment`."""
    user = getattr(request, "user", None) or AnonymousUser()
    return {
        "role": role_of(user),
        "can_read": can(user, Right.READ),
        "can_act": can(user, Right.ACT),
        "can_admin": can(user, Right.ADMIN),
        "environment": settings.PQADMIN_ENVIRONMENT,
    }
