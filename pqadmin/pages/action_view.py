"""`ActionView`: shows a form or a confirmation, performs its action once and answers."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise, cached_property
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods
from django.views.generic import FormView

from pqadmin.accounts import arming
from pqadmin.accounts.roles import Right, require
from pqadmin.display.addresses import leave, queue_url, referring_page
from pqadmin.pages import form_idempotency, toasts
from pqadmin.pages.queue_context import PREVIEW_BYTES, about
from pqadmin.pages.refusals import Refusal, explain
from pqadmin.site_audit import Author
from pqadmin.store import get_store
from queues import Actions, Queue, QueueStatus, ReadTransaction, RequestKey
from queues.errors import AlreadyDone, KeyReused, NotForAttached, OutcomeUnknown, QueueError, QueueNotFound, StoreError

_RETRY_SECONDS = "5"
#: What a request for the side sheet of an open page names as its target.
_SHEET = "div#act"


class ActionView(FormView):  # type: ignore[type-arg] # generic in the stubs only
    """Shows a form or a confirmation, performs its action once and answers.

    A subclass gives the form, what the page reads, and `perform`, which returns where the answer leads.
    """

    http_method_names = ["get", "head", "post"]
    form_class: Any = forms.Form
    right: ClassVar[Right] = Right.ACT
    #: The name of the action in request keys.
    action = ""
    #: The beginning of the ids of its fields, if not the name of the action.
    form_id = ""
    #: The argument of the address that names what the action is about; empty: none does.
    subject_argument: ClassVar[str] = ""
    #: The page to which a refused action without a page of its own leads, and a form without an answer.
    home_page: ClassVar[str] = "dashboard:overview"
    #: The form alone, for the side sheet of an open page; without a template of its own, a page is made around it.
    fragment_name: ClassVar[str] = ""
    #: What the form alone is replaced by when the action is not available.
    unavailable_name = "dashboard/_not_for_attached.html"
    title: str | Promise = ""
    section: ClassVar[str] = "queues"
    #: A sent form is judged by what the store holds; otherwise it is read for a refused form only.
    reads_first: ClassVar[bool] = True
    #: The name of the button that asks for a preview, which changes nothing; empty: there is none.
    preview_button: ClassVar[str] = ""
    #: A read-only site allows it without an open window.
    always_allowed: ClassVar[bool] = False
    key: RequestKey

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., HttpResponse]:
        """Return the view behind the checks of its method, of rights and of the read-only window."""
        view: Any = super().as_view(**initkwargs)
        methods = [method.upper() for method in cls.http_method_names]
        checked: Callable[..., HttpResponse] = require(cls.right, harmless=cls.previews)(view)
        return require_http_methods(methods)(checked)

    # What subclasses give

    @classmethod
    def previews(cls, request: HttpRequest) -> bool:
        """Say whether a sent form asks for a preview, which changes nothing."""
        return bool(cls.preview_button) and cls.preview_button in request.POST

    @property
    def subject(self) -> str:
        """What the action is about, in request keys."""
        return str(self.kwargs.get(self.subject_argument, ""))

    @property
    def home(self) -> str:
        """The address of `home_page`."""
        return reverse(self.home_page)

    def load(self) -> None:
        """Read all that the page shows at one version of the store."""

    def unavailable(self) -> Exception | Refusal | None:
        """Return why the action is not available at all."""
        return None

    def perform(self, form: Any) -> str | HttpResponse:
        """Perform the action and return the address that its answer leads to, or the answer."""
        raise NotImplementedError

    def answer_of(self, result: Any) -> str:
        """Return where a second sending leads, by what the action of the first one returned."""
        return self.home

    def preview(self, form: Any) -> HttpResponse:
        """Answer a form that changes nothing."""
        return self.show(form)

    # The steps

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form."""
        self.load()
        return self.show()

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Perform the action once if the form is valid."""
        previews = self.previews(request)
        if self.reads_first:
            # The first sending may have renamed or deleted what is read.
            first = None if previews else form_idempotency.sent_before(request, self.purpose, self.typed)
            if first is not None:
                return self.repeated(*first)
            self.load()
            if self.unavailable() is not None:
                return self.show()
        form = self.get_form()
        valid = form.is_valid()
        if previews:
            return self.preview(form)
        return self.form_valid(form) if valid else self.form_invalid(form)

    def form_valid(self, form: Any) -> HttpResponse:
        """Perform the action once and answer."""
        if not self.always_allowed:
            arming.demand(self.request)  # here too: what `previews` says cannot change anything by mistake
        try:
            self.key = form_idempotency.request_key(self.request, self.purpose, self.typed, self.answer_of)
            self.actions = get_store().actions(self.username, key=self.key)
            answer = self.perform(form)
        except AlreadyDone as done:
            return self.repeated(done.answer.decode(), done.at)
        except KeyReused:
            return self.refused(form, form_idempotency.FormChanged())
        except (QueueError, StoreError) as error:
            if isinstance(error, OutcomeUnknown):  # the same number again: it is done once at most
                self.number = self.request.POST[form_idempotency.FIELD]
            return self.refused(form, error)
        return self.leave(answer) if isinstance(answer, str) else answer

    def leave(self, url: str) -> HttpResponse:
        """Lead to the answer. A sheet gets its address, and may stay on its page."""
        return HttpResponse(headers={"HX-Redirect": url}) if self.in_sheet else leave(url)

    def repeated(self, url: str, at: datetime) -> HttpResponse:
        """Lead to where the first sending of the form led, doing nothing."""
        toasts.failed(self.request, form_idempotency.words(at))
        return self.leave(url)

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the form again with its errors."""
        if not self.reads_first:
            self.load()
        return self.show(form, invalid(form))

    def refused(self, form: Any, error: QueueError | StoreError) -> HttpResponse:
        """Show the form again with the reason, over what the store holds now."""
        refusal = explain(error)
        if self.template_name or self.fragment_name:
            self.load()
        blame(form, refusal)
        return self.show(form, refusal)

    def show(self, form: Any = None, refusal: Refusal | None = None, **more: Any) -> HttpResponse:
        """Render the form with what was typed, and why it was refused."""
        missing = self.unavailable()
        if missing is not None:
            refusal = missing if isinstance(missing, Refusal) else explain(missing)
        if refusal is not None and not self.template_name and not self.fragment_name:
            told = refuse(self.request, refusal, self.home)
            return self.leave(referring_page(self.request) or self.home) if self.in_sheet else told
        context = self.get_context_data(form=form or self.get_form(), refusal=refusal, **more)
        context |= {
            "title": self.title,
            "fragment": self.fragment_name if missing is None else self.unavailable_name,
        }
        template = self.template_name or "dashboard/action.html"
        if self.fragment_name and self.in_sheet:
            return render(self.request, "dashboard/_in_sheet.html", context)  # refused or not: it is shown
        if refusal is None:
            return render(self.request, template, context)
        return answer(self.request, template, context, refusal=refusal)

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with. Its fields get ids of their own in an open page."""
        return {"auto_id": f"{self.form_id or self.action}-%s", **super().get_form_kwargs()}

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the templates show."""
        return {"section": self.section, "hidden": self.hidden, **super().get_context_data(**more)}

    # What is at hand

    @property
    def in_sheet(self) -> bool:
        """Whether the answer goes into the side sheet of an open page."""
        return self.request.headers.get("HX-Target") == _SHEET

    @cached_property
    def actions(self) -> Actions:
        """The actions of this user; while a form is executed, with its key."""
        return get_store().actions(self.username)

    @property
    def username(self) -> str:
        """The name of this user."""
        return self.request.user.get_username()

    @property
    def author(self) -> Author:
        """This user, with the key of the form, for changes of the site's own tables."""
        return Author(name=self.username, key=self.key)

    @cached_property
    def number(self) -> str:
        """The number of a new form."""
        return form_idempotency.number(self.request, self.purpose)

    @property
    def purpose(self) -> str:
        """What a sent form was made for."""
        return purpose_of(self.action, self.subject)

    @property
    def typed(self) -> dict[str, forms.Field]:
        """The fields that a user fills in: what they hold is what the form asks for."""
        fields = self.get_form_class().base_fields
        return {name: field for name, field in fields.items() if not field.widget.is_hidden}

    @property
    def hidden(self) -> Mapping[str, str]:
        """The hidden fields of a new form."""
        return {form_idempotency.FIELD: self.number}


class QueueActionView(ActionView):
    """An action on the queue that the address names."""

    status: QueueStatus
    #: Why attached queues do not have the action; empty: they have it.
    why_not_attached: str | Promise = ""

    @property
    def name(self) -> str:
        """The queue's name."""
        return str(self.kwargs["name"])

    @property
    def url(self) -> str:
        """The address of the queue's page."""
        return queue_url(self.name)

    @property
    def home(self) -> str:
        """The queue's page."""
        return self.url

    @property
    def queue_id(self) -> int:
        """The id of the queue that a sent form was made for, 0 for none. It may have been renamed since."""
        text = self.request.POST.get("queue_id", "")
        return int(text) if re.fullmatch("[0-9]{1,19}", text) else 0

    @property
    def subject(self) -> str:
        """The queue."""
        return str(self.queue_id)

    @cached_property
    def number(self) -> str:
        """The number of a new form, for the queue as it is now."""
        return form_idempotency.number(self.request, purpose_of(self.action, str(self.status.id)))

    @property
    def hidden(self) -> Mapping[str, str]:
        """The hidden fields of a new form, with the queue that it is made for."""
        return {form_idempotency.FIELD: self.number, "queue_id": str(self.status.id)}

    def load(self) -> None:
        """Read all that the page shows at one version of the store; raise `QueueNotFound`."""
        with get_store().suggesting():
            get_store().read(self.read)

    def unavailable(self) -> Exception | Refusal | None:
        """Return why an attached queue does not have the action."""
        why = self.why_not_attached
        return NotForAttached(self.name, str(why)) if why and self.status.attached else None

    def read(self, tr: ReadTransaction) -> Queue:
        """Read the queue, and in subclasses what else the page shows."""
        queue = get_store().queue(self.name, tr=tr)
        self.status = queue.status(tr=tr, preview=PREVIEW_BYTES)
        return queue

    def form_valid(self, form: Any) -> HttpResponse:
        """Perform the action on the queue that the form was made for."""
        if self.reads_first and self.queue_id and self.queue_id != self.status.id:
            return self.show(form, other_queue())
        return super().form_valid(form)

    def refused(self, form: Any, error: QueueError | StoreError) -> HttpResponse:
        """Show the form again with the reason, over the queue as it is now."""
        if isinstance(error, QueueNotFound):
            self.load()
            return self.show(form, other_queue())
        return super().refused(form, error)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the templates show of the queue."""
        return about(self.request, self.status, **super().get_context_data(**more))


def answer(request: HttpRequest, template: str, context: Mapping[str, Any], *, refusal: Refusal) -> HttpResponse:
    """Show a form again, with why it was refused and all that was typed."""
    response = render(request, template, {**context, "refusal": refusal}, status=refusal.status)
    if refusal.status == 503:
        response["Retry-After"] = _RETRY_SECONDS
    return response


def refuse(request: HttpRequest, refusal: Refusal, url: str) -> HttpResponse:
    """Say why an action without a page was refused, on the page that it was sent from."""
    toasts.failed(request, f"{refusal.title}: {refusal.text} {refusal.advice}")
    return leave(url)


def invalid(form: forms.Form) -> Refusal:
    """Return the notice above a form with wrong fields."""
    if not form.errors:
        return Refusal(title="", text="", advice="", status=422)
    return Refusal(
        title=_("Fix the errors below"),
        text=" ".join(map(str, form.non_field_errors())) or _("Nothing was changed."),
        advice="",
        status=422,
    )


def blame(form: forms.Form, refusal: Refusal) -> None:
    """Put a refusal at the field that it is about, if the form has it."""
    if refusal.field in form.fields:
        form.add_error(refusal.field, refusal.text)


def purpose_of(action: str, subject: str) -> str:
    """Return what a form of an action is made for."""
    return f"{action}:{subject}" if subject else action


def hidden_fields(request: HttpRequest, action: str, status: QueueStatus) -> dict[str, str]:
    """Return the hidden fields of a form for an action on a queue."""
    return {
        form_idempotency.FIELD: form_idempotency.number(request, purpose_of(action, str(status.id))),
        "queue_id": str(status.id),
    }


def other_queue() -> Refusal:
    """Return the notice for a form that was made for another queue of the same name."""
    return Refusal(
        title=_("Another queue has this name now"),
        text=_("The queue that this form was made for was renamed or deleted. Nothing was changed."),
        advice=_("Look at this one before you send it again."),
    )
