"""Checks while typing: they change nothing and answer with a fragment."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.push import views as push
from pqadmin.pages import act_view
from pqadmin.pages.queue_context import status_of


@require_POST
@require(Right.ACT, harmless=lambda _request: True)
@act_view.seeing_queue
def check_value(request: HttpRequest, name: str) -> HttpResponse:
    """Say whether what was typed is JSON and how many bytes it has."""
    status = status_of(name)
    form = push.form_of(request, status)
    form.is_valid()
    return render(request, "dashboard/_check.html", {"check": push.check(form)})
