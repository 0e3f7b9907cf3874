"""Tokens of programs: one's own, and for admins all, listed, created and revoked."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from pqadmin import token_lifecycle
from pqadmin.accounts.rights import Right
from pqadmin.accounts.roles import can, require, signed_in
from pqadmin.accounts.scope import scope_of
from pqadmin.pages import form_idempotency, toasts
from pqadmin.pages.action_view import ActionView
from pqadmin.people.matching_queues import matching
from pqadmin.people.token_forms import TokenForm
from pqadmin.store import get_store, store_now
from queues.errors import QueueError

PAGE = 50
#: Revoked tokens that are shown; the audit has all.
_ENDED = 20


@require_safe
@require(Right.READ)
def token_list(request: HttpRequest) -> HttpResponse:
    """List tokens by name: valid ones, then those that were revoked last."""
    asked, after = request.GET.get("q", "")[:150].strip(), request.GET.get("after", "")[:100]
    owner_id = None if can(request.user, Right.ADMIN) else request.user.pk
    shown, following = token_lifecycle.page(asked, owner_id, after=after, limit=PAGE)
    kept, now = {"q": asked} if asked else {}, store_now()
    context = {
        "section": "tokens",
        "asked": asked,
        "lines": [
            {
                "token": token,
                "expired": token.expires_at is not None and token.expires_at <= now,
                "hidden": {form_idempotency.FIELD: form_idempotency.number(request, f"revoke-token:{token.pk}")},
            }
            for token in shown
        ],
        "ended": () if after else token_lifecycle.revoked(asked, owner_id, limit=_ENDED),
        "of_all": can(request.user, Right.ADMIN),
        "now": now,
        "next_url": "?" + urlencode({**kept, "after": following}) if following else "",
        "in_middle": bool(after),
        "first_url": "?" + urlencode(kept),
    }
    return render(request, "people/tokens.html", context)


class TokenActionView(ActionView):
    """A change of tokens. A read-only site allows it: no queue is written, and revoking must not wait."""

    right, section = Right.READ, "tokens"
    always_allowed, home_page = True, "people:tokens"


@method_decorator(never_cache, name="dispatch")
class CreateTokenView(TokenActionView):
    """Creates a token of one's own and shows it, once."""

    action, template_name = "create-token", "people/new_token.html"
    form_class = TokenForm
    preview_button = "preview"

    def get_form_kwargs(self) -> dict[str, Any]:
        """Offer the verb of admins to admins alone."""
        return {**super().get_form_kwargs(), "of_admin": can(self.request.user, Right.ADMIN)}

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows: the queues that match, of those that the owner sees."""
        try:
            globs = token_lifecycle.read_globs(self.request.POST.get("queues", "")[:1_000])
        except QueueError:
            return super().get_context_data(**more)
        found = matching(", ".join(globs), scope_of(self.request.user).restricted_to(globs))
        return super().get_context_data(matching=found, **more)

    def perform(self, form: TokenForm) -> HttpResponse:
        """Create the token; a second sending leads to the list."""
        owner = signed_in(self.request)
        token, secret = token_lifecycle.create(
            form.cleaned_data["name"], owner, **form.asked, by=self.author, now=get_store().now()
        )
        return render(self.request, "people/token.html", {"section": "tokens", "token": token, "secret": secret})


class RevokeTokenView(TokenActionView):
    """Revokes a token."""

    http_method_names = ["post"]
    action, subject_argument = "revoke-token", "key"

    def perform(self, form: Any) -> str:
        """Revoke the token, one's own if one is no admin."""
        owner = None if can(self.request.user, Right.ADMIN) else signed_in(self.request)
        token = token_lifecycle.revoke(self.kwargs["key"], by=self.author, now=get_store().now(), owner=owner)
        words = _("The token %(name)s is revoked: its requests are refused, and its streams end.")
        toasts.done(self.request, words % {"name": token.name})
        return self.home
