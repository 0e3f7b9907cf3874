"""What the views of acts share: answers, refused forms, and queues that are not there or cannot be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.display.addresses import leave, queue_url
from pqadmin.display.errors import said
from pqadmin.pages import once, toasts, visibility
from pqadmin.pages.once import AlreadySent, FormRefused
from pqadmin.pages.queue_context import about
from pqadmin.pages.refusals import Refusal, explain
from queues import QueueStatus
from queues.errors import NotForAttached, QueueError, QueueNotFound, QueueUnreadable, StoreError, display_name

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]

_RETRY_SECONDS = "5"


def seeing_queue(view: View[P]) -> View[P]:
    """Answer for a view that finds no queue, and for a form that was sent before."""

    @wraps(view)
    def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except QueueNotFound as missing:
            return queue_missing(request, missing)
        except AlreadySent as sent:
            return replayed(request, sent, queue_url(str(kwargs["name"])))

    return checked


def queue_missing(request: HttpRequest, missing: QueueNotFound) -> HttpResponse:
    """Say that no queue has this name, and which ones have a similar one."""
    if "HX-Request" in request.headers:  # a whole page has no place inside another: go to it instead
        return HttpResponse(status=404, headers={"HX-Redirect": queue_url(missing.name)})
    suggestions = visibility.scope(request).of_those(missing.suggestions)
    context = {
        "section": "queues",
        "name": write.shorten(display_name(missing.name), 200),
        "suggestions": [(display_name(name), queue_url(name)) for name in suggestions],
        "can_create": visibility.may_name(visibility.scope(request), missing.name),
    }
    return render(request, "dashboard/no_queue.html", context, status=404)


def queue_unreadable(request: HttpRequest, error: QueueUnreadable) -> HttpResponse:
    """Say that this one queue cannot be read, why, and who can do what about it; all others are well."""
    if "HX-Request" in request.headers:
        return HttpResponse(status=409, headers={"HX-Redirect": queue_url(error.queue)})
    context = {"section": "queues", "name": write.shorten(display_name(error.queue), 200), "why": said(error.why)}
    return render(request, "dashboard/unreadable_queue.html", context, status=409)


def refuse(request: HttpRequest, refusal: Refusal, url: str) -> HttpResponse:
    """Say why an act without a page of its own was refused, on the page that it was sent from."""
    toasts.failed(request, f"{refusal.title}: {refusal.text} {refusal.advice}")
    return leave(url)


def answer(request: HttpRequest, template: str, context: Mapping[str, Any], *, refusal: Refusal) -> HttpResponse:
    """Show a form again, with why it was refused and all that was typed."""
    response = render(request, template, {**context, "refusal": refusal}, status=refusal.status)
    if refusal.status == 503:
        response["Retry-After"] = _RETRY_SECONDS
    return response


def not_offered(request: HttpRequest, status: QueueStatus, act: str, why: str) -> HttpResponse:
    """Say in the core's words that an attached queue has no such act."""
    refusal = explain(NotForAttached(status.name, why))
    return answer(request, f"dashboard/{act}.html", about(request, status), refusal=refusal)


def invalid(form: forms.Form) -> Refusal:
    """Return the notice above a form whose fields are wrong."""
    return (
        Refusal(
            title=_("This cannot be sent as it is"),
            text=_("Nothing was changed. What is wrong stands at its field."),
            advice="",
            status=422,
        )
        if form.errors
        else Refusal(title="", text="", advice="", status=422)
    )


def blame(form: forms.Form, refusal: Refusal) -> None:
    """Put a refusal at the field that it is about, if the form has it."""
    if refusal.field in form.fields:
        form.add_error(refusal.field, refusal.text)


def replayed(request: HttpRequest, sent: AlreadySent, fallback: str) -> HttpResponse:
    """Answer a form that was sent before: lead to where its first sending led, doing nothing."""
    toasts.failed(request, sent.words)
    return leave(sent.answer or fallback)


def made_for(request: HttpRequest, act: str) -> int:
    """Return the id of the queue that a sent form was made for, 0 for none; raise `AlreadySent`.

    Asked before the queue is looked up: the first sending may have renamed or deleted it.
    """
    text = request.POST.get("queue_id", "")
    queue_id = int(text) if re.fullmatch("[0-9]{1,19}", text) else 0
    once.refuse_replay(request, f"{act}:{queue_id}")
    return queue_id


def form_fields(request: HttpRequest, act: str, status: QueueStatus) -> dict[str, str]:
    """Return the hidden fields of a form for an act on a queue."""
    return {once.FIELD: once.number(request, f"{act}:{status.id}"), "queue_id": str(status.id)}


def act_once(
    request: HttpRequest, act: str, status: QueueStatus, queue_id: int, do: Callable[[], str]
) -> Refusal | None:
    """Do an act on the queue that its form was made for; return why it was refused, None if it was done.

    `do` returns where a second sending leads. A missing queue and `AlreadySent` are left to the caller.
    """
    if queue_id and queue_id != status.id:
        return Refusal(
            title=_("Another queue has this name now"),
            text=_("The queue that this form was made for was renamed or deleted. Nothing was changed."),
            advice=_("Look at this one before you send it again."),
        )
    try:
        with once.once(request, f"{act}:{queue_id}") as sending:
            sending.answer = do()
    except FormRefused:
        return stale_form()
    except QueueNotFound:
        raise
    except (QueueError, StoreError) as error:
        return explain(error)
    return None


def stale_form() -> Refusal:
    """Return the notice for a form that was not made here, or is older than a day."""
    return Refusal(
        title=_("This form has expired"),
        text=_("It is older than a day, or was not made for you by this site. Nothing was changed."),
        advice=_("Look at it again and send it from here."),
        status=409,
    )
