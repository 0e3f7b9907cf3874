"""The palette and the sheet of keys: dialogs of every page, and pages of their own without JavaScript."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.palette.entries import Place
from pqadmin.dashboard.palette.find import MAX_ID, MAX_LENGTH, find


@require_safe
@require(Right.READ)
def palette(request: HttpRequest) -> HttpResponse:
    """Show what the typed text finds; a fragment's request gets the entries alone."""
    text = _asked(request, "q", MAX_LENGTH)
    fragment = request.headers.get("HX-Target", "") == "div#palette-found"
    selected = _asked(request, "selected", 7)
    place = Place(
        queue=_asked(request, "here", MAX_LENGTH),
        item=_asked(request, "item", MAX_ID),
        state=_asked(request, "state", MAX_LENGTH),
        # A page of its own has no list with ticked rows.
        selected=int(selected) if fragment and selected.isascii() and selected.isdigit() else 0,
    )
    context = {"section": "palette", "text": text, "place": place, "found": find(request, text, place)}
    return render(request, "dashboard/_palette_found.html" if fragment else "dashboard/palette.html", context)


def _asked(request: HttpRequest, name: str, most: int) -> str:
    return request.GET.get(name, "").replace("\0", "")[:most]


@require_safe
@require(Right.READ)
def keys(request: HttpRequest) -> HttpResponse:
    """Show what each key does; the dialog of a page gets the sheet alone."""
    alone = request.headers.get("HX-Target", "") == "dialog#keys"
    return render(request, "dashboard/_keys_dialog.html" if alone else "dashboard/keys.html", {"section": "keys"})
