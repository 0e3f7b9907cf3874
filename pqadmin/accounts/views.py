"""Login, logout and the change of one's own password."""

from __future__ import annotations

import math
from typing import Any

from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache

from pqadmin.accounts import throttle


@method_decorator(login_not_required, name="dispatch")
@method_decorator(never_cache, name="dispatch")
class LoginView(auth_views.LoginView):
    """Name and password; too many wrong ones have to wait."""

    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Count the attempt before the password is looked at."""
        account, address = request.POST.get("username", ""), str(request.META.get("REMOTE_ADDR", ""))
        attempt = throttle.begin(account=account, address=address, now=timezone.now())
        if attempt.retry_after is not None:
            return self._refuse(max(1, math.ceil(attempt.retry_after.total_seconds())))
        answer: HttpResponse = super().post(request, *args, **kwargs)
        if request.user.is_authenticated:
            throttle.succeed(attempt, account=account, address=address)
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show the form again with 422, so that no program takes it for a login."""
        answer = super().form_invalid(form)
        answer.status_code = 422
        return answer

    def _refuse(self, seconds: int) -> HttpResponse:
        minutes = math.ceil(seconds / 60)
        wait = ngettext("Try again in a minute.", "Try again in %(minutes)d minutes.", minutes)
        context = self.get_context_data(form=self.get_form_class()(self.request))
        context["refusal"] = _("Too many failed logins.") + " " + wait % {"minutes": minutes}
        return self.render_to_response(context, status=429, headers={"Retry-After": str(seconds)})


class LogoutView(auth_views.LogoutView):
    """Ends the session; only by a form, so that a link from elsewhere can not."""


class PasswordView(auth_views.PasswordChangeView):
    """Changes one's own password and ends one's other sessions."""

    template_name = "accounts/password.html"
    success_url = reverse_lazy("accounts:password")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        """Keep the new password and say so."""
        with transaction.atomic():  # not the password without the session that goes with it
            answer = super().form_valid(form)
        messages.success(self.request, _("Your password is changed. Your other sessions have ended."))
        return answer
