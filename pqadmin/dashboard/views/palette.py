"""The palette and the sheet of keys: dialogs of every page, and pages of their own for whoever has no script."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.palette import MAX_LENGTH, find


@require_safe
@require(Right.READ)
def palette(request: HttpRequest) -> HttpResponse:
    """Show what the typed text finds; a fragment's request gets the entries alone."""
    text = request.GET.get("q", "").replace("\0", "")[:MAX_LENGTH]
    here = request.GET.get("here", "")[:MAX_LENGTH]
    context = {"section": "palette", "text": text, "here": here, "found": find(request, text, here)}
    fragment = request.headers.get("HX-Target", "") == "div#palette-found"
    return render(request, "dashboard/_palette_found.html" if fragment else "dashboard/palette.html", context)


@require_safe
@require(Right.READ)
def keys(request: HttpRequest) -> HttpResponse:
    """Show what each key does; the dialog of a page gets the sheet alone."""
    alone = request.headers.get("HX-Target", "") == "dialog#keys"
    return render(request, "dashboard/_keys_dialog.html" if alone else "dashboard/keys.html", {"section": "keys"})
