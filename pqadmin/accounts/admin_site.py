"""Django's admin, for superusers, with the site's own login in front."""

from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.utils.translation import gettext_lazy as _

from pqadmin.accounts import arming
from pqadmin.accounts.roles import SAFE


class SuperuserAdminSite(AdminSite):
    """People and groups, nothing else."""

    site_title = site_header = _("pqadmin: people")
    index_title = _("People and groups")
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        """Let active superusers in."""
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Refuse writes of every view but logout on a read-only site that is not armed."""
        if view == self.logout:
            return super().admin_view(view, cacheable)

        @wraps(view)
        def armed(request: HttpRequest, *arguments: Any, **named: Any) -> Any:
            if request.method in SAFE:
                return view(request, *arguments, **named)
            arming.demand(request)
            with transaction.atomic():  # without an audit record nothing is changed
                return view(request, *arguments, **named)

        return super().admin_view(armed, cacheable)

    def password_change(  # type: ignore[override] # Django's shows a form
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Send to the site's own form, which counts wrong guesses of the old password."""
        return redirect("accounts:password")

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Send anonymous users to the site's login, which is throttled; refuse signed-in users."""
        if request.user.is_authenticated:
            raise PermissionDenied
        after = request.GET.get(REDIRECT_FIELD_NAME) or resolve_url("admin:index")
        return redirect_to_login(after, resolve_url("accounts:login"))
