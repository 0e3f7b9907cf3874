"""Checks of a value while it is typed: they change nothing and answer with a fragment."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.push.forms import PushForm
from pqadmin.display import format as write
from pqadmin.display.values import NotJSON, parse_json
from pqadmin.pages.queue_context import status_of


@require_POST
@require(Right.ACT, harmless=lambda _request: True)
def check_value(request: HttpRequest, name: str) -> HttpResponse:
    """Say whether what was typed is JSON and how many bytes it has."""
    form = PushForm(request.POST, status=status_of(name))
    form.is_valid()
    return render(request, "dashboard/_check.html", {"check": check(form.payload)})


def check(payload: bytes) -> dict[str, Any]:
    """Say whether bytes are JSON, how many they are, and what is wrong where."""
    size = write.size(len(payload))
    try:
        parse_json(payload.decode("utf-8"))
    except NotJSON as error:
        return {"good": False, "text": str(error), "size": size}
    except UnicodeDecodeError:
        return {"good": False, "text": _("These bytes are no text, so no JSON."), "size": size}
    return {"good": True, "text": _("This is JSON."), "size": size}
