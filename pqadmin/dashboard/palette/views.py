"""The palette and the sheet of keys: dialogs of every page, and pages of their own without JavaScript."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.palette.entries import Place
from pqadmin.dashboard.palette.find import MAX_ID, MAX_LENGTH, find

#: Digits of how many rows are ticked.
_MAX_DIGITS = 7


@require_safe
@require(Right.READ)
def palette(request: HttpRequest) -> HttpResponse:
    """Show what the typed text finds; a fragment's request gets the entries alone."""
    text = _asked(request, "q", MAX_LENGTH)
    fragment = request.headers.get("HX-Target", "") == "div#palette-found"
    place = Place(
        queue=_asked(request, "here", MAX_LENGTH),
        item=_asked(request, "item", MAX_ID),
        state=_asked(request, "state", MAX_LENGTH),
        selected=_selected(request) if fragment else 0,  # a page of its own has no list with ticked rows
    )
    context = {"section": "palette", "text": text, "place": place, "found": find(request, text, place)}
    return render(request, "dashboard/_palette_found.html" if fragment else "dashboard/palette.html", context)


def _asked(request: HttpRequest, name: str, most: int) -> str:
    return request.GET.get(name, "").replace("\0", "")[:most]


def _selected(request: HttpRequest) -> int:
    text = _asked(request, "selected", _MAX_DIGITS)
    return int(text) if text.isascii() and text.isdigit() else 0


@require_safe
@require(Right.READ)
def keys(request: HttpRequest) -> HttpResponse:
    """Show what each key does; the dialog of a page gets the sheet alone."""
    alone = request.headers.get("HX-Target", "") == "dialog#keys"
    return render(request, "dashboard/_keys_dialog.html" if alone else "dashboard/keys.html", {"section": "keys"})
