"""Messages after an act, each with at most one thing to do about it: undo, or a page to look at.

They travel with Django's messages; what to do rides in the message's extra tags as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.contrib import messages
from django.contrib.messages.storage.base import Message
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from pqadmin.pages import form_idempotency

#: What a script names as its target that shows the messages of a page on another one.
_TARGET = "div#toasts"
#: What rides in a message's extra tags.
_RIDING = ("label", "action", "link", "link_label", "fields")


@dataclass(frozen=True, slots=True, kw_only=True)
class Toast:
    """A message as shown. `action` is posted to with `fields`; `link` is only opened, and may be beside it."""

    text: str
    bad: bool = False
    label: str = ""
    action: str = ""
    link: str = ""
    link_label: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def done(
    request: HttpRequest,
    text: str,
    *,
    label: str = "",
    action: str = "",
    link: str = "",
    link_label: str = "",
    fields: Mapping[str, str] | None = None,
) -> None:
    """Say on the next page what was done."""
    about = {"label": label, "action": action, "link": link, "link_label": link_label, "fields": dict(fields or {})}
    messages.success(request, text, extra_tags=json.dumps(about))


def undoable(request: HttpRequest, text: str, *trash_ids: str, link: str = "", link_label: str = "") -> None:
    """Say on the next page what was done, and offer its undo: one entry there, several in the trash.

    `link` leads to what was done, beside undoing one entry.
    """
    if len(trash_ids) == 1:
        done(
            request,
            text,
            label=_("Undo"),
            action=reverse("dashboard:restore", args=[trash_ids[0]]),
            link=link,
            link_label=link_label,
            fields={form_idempotency.FIELD: form_idempotency.number(request, f"restore:{trash_ids[0]}")},
        )
    elif trash_ids:
        done(request, text, label=_("Look in the trash"), link=reverse("dashboard:trash"))
    else:
        done(request, text, label=link_label, link=link)


def failed(request: HttpRequest, text: str) -> None:
    """Say on the next page what was not done, and why."""
    messages.error(request, text)


def shows(request: HttpRequest | None) -> bool:
    """Return whether the answer is a page that a user sees, or a script's that asks for its messages."""
    if request is None or request.headers.get("Sec-Fetch-Dest") != "empty":
        return True
    return request.headers.get("HX-Target") == _TARGET


def read(message: Message) -> Toast:
    """Read a message back."""
    text = str(message.message)
    bad = message.level >= messages.WARNING
    about = json.loads(message.extra_tags or "{}")
    return Toast(text=text, bad=bad, **{k: about[k] for k in _RIDING if k in about})
