"""Login, logout and the change of one's own password."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.models import User
from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.generic import FormView

from pqadmin.accounts import throttle
from pqadmin.accounts.access import UNSENT


@method_decorator(login_not_required, name="dispatch")
@method_decorator(never_cache, name="dispatch")
class LoginView(auth_views.LoginView):
    """Login by name and password, throttled."""

    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Count the attempt before the password is checked."""
        account, address = request.POST.get("username", ""), str(request.META.get("REMOTE_ADDR", ""))
        attempt = throttle.begin(account=account, address=address, now=timezone.now())
        if attempt.retry_after is not None:
            form = self.get_form_class()(self.request)
            return _refuse(self, form, _("Too many failed logins."), attempt.retry_after)
        answer: HttpResponse = super().post(request, *args, **kwargs)
        if request.user.is_authenticated:
            throttle.succeed(attempt)
        return answer

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Say whether a form was sent without a login."""
        unsent = UNSENT in self.request.GET or UNSENT in self.request.POST
        return super().get_context_data(unsent=unsent, **more)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show the form again with 422, so that no program takes it for a login."""
        answer = super().form_invalid(form)
        answer.status_code = 422
        return answer


class OwnPasswordForm(PasswordChangeForm):
    """The old password, and twice a new one that differs from it."""

    def clean(self) -> dict[str, Any]:
        """Refuse the old password as the new one."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("old_password") and cleaned["old_password"] == cleaned.get("new_password1"):
            self.add_error("new_password1", _("This is the old password: choose another one."))
        return cleaned


class PasswordView(auth_views.PasswordChangeView):
    """Changes one's own password and ends one's other sessions."""

    template_name, form_class = "accounts/password.html", OwnPasswordForm
    success_url = reverse_lazy("accounts:password")

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Count the old password as a guess before it is checked."""
        attempt = throttle.begin_change(person=str(request.user.pk), now=timezone.now())
        form = self.get_form()
        if attempt.retry_after is not None:
            unchecked = OwnPasswordForm(form.user)
            return _refuse(self, unchecked, _("Too many wrong passwords."), attempt.retry_after)
        valid = form.is_valid()
        if "old_password" not in form.errors:  # it was right, even if the new one is refused
            throttle.succeed(attempt)
        return self.form_valid(form) if valid else self.form_invalid(form)

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        """Store the new password and confirm it, unless the account was reset or deactivated while it was hashed."""
        verified = form.user.password
        user = form.save(commit=False)
        with transaction.atomic():  # the password and its session change together
            same = User.objects.select_for_update().filter(pk=user.pk, is_active=True, password=verified)
            if not same.exists():
                why = _("Your account was changed meanwhile. Your password was not changed.")
                unchecked = self.get_context_data(form=OwnPasswordForm(user), refusal=why)
                return self.render_to_response(unchecked, status=409)
            user.save(update_fields=["password"])
            update_session_auth_hash(self.request, user)
        messages.success(self.request, _("Your password is changed. Your other sessions have ended."))
        return HttpResponseRedirect(self.get_success_url())


def _refuse(view: FormView[Any], form: Form, why: str, wait: timedelta) -> HttpResponse:
    seconds = max(1, math.ceil(wait.total_seconds()))
    minutes = math.ceil(seconds / 60)
    words = ngettext("Try again in a minute.", "Try again in %(minutes)d minutes.", minutes)
    context = view.get_context_data(form=form, refusal=why + " " + words % {"minutes": minutes})
    return view.render_to_response(context, status=429, headers={"Retry-After": str(seconds)})
