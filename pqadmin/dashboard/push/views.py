"""Push one item, at once or later, from a template or like another. An answer is a redirect: a reload sends nothing."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pqadmin.accounts.roles import Right, require
from pqadmin.dashboard.items.action_forms import typed_value
from pqadmin.dashboard.items.views import see
from pqadmin.dashboard.push.forms import check
from pqadmin.display import format as write
from pqadmin.display import items
from pqadmin.display.addresses import item_url, leave, queue_url
from pqadmin.display.redaction import rules_of
from pqadmin.display.values import hidden
from pqadmin.pages import push_templates, toasts
from pqadmin.pages.action_view import QueueActionView
from pqadmin.pages.push_form import PushForm
from pqadmin.pages.push_templates import PushTemplate
from pqadmin.pages.queue_context import status_of
from pqadmin.pages.refusals import NotPossible, Refusal
from pqadmin.site_audit import Author
from queues import Item, QueueStatus

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the fields of a fresh form come from: an item, a template, or nothing."""

    fields: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    #: Why nothing came of it; empty: it did.
    wrong: str = ""
    link: str = ""


class PushView(QueueActionView):
    """Pushes one item (FIFO: enqueues it)."""

    action, template_name, fragment_name = "push", "dashboard/push.html", "dashboard/_push.html"
    form_class = PushForm
    preview_button = "check"
    source = Source()

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form, filled in from a template or an item if the address names one."""
        self.load()
        self.source = _source(request, self.status)
        return self.show()

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Push the item, or keep the form as a template."""
        return self.keep() if "keep" in request.POST else super().post(request, *args, **kwargs)

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with."""
        return {**super().get_form_kwargs(), "status": self.status}

    def get_initial(self) -> dict[str, Any]:
        """Start with what the template or the item holds."""
        return dict(self.source.fields)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        return super().get_context_data(source=self.source, templates=_templates(self.status.id), **more)

    def preview(self, form: PushForm) -> HttpResponse:
        """Say whether the value is JSON."""
        return self.show(form, check=check(form.payload))

    def perform(self, form: PushForm) -> str:
        """Push the item."""
        items = [(form.payload, form.parsed_priority)]
        pushed = self.actions.push_undoably(self.name, items, delay=form.span, due=form.moment, expect_id=self.queue_id)
        item = pushed.items[0]
        toasts.undoable(
            self.request,
            _pushed(item, self.status.kind == "fifo"),
            pushed.trash_id,
            link=item_url(self.name, item.id),
            link_label=_("Look at it"),
        )
        return self.url

    def keep(self) -> HttpResponse:
        """Keep what is typed as a template; it need not be fit to push."""
        self.load()
        form, name = self.get_form(), self.request.POST.get("template_name", "")
        form.is_valid()
        wrong, by = "", Author(name=self.username)
        try:
            push_templates.keep(self.status.id, self.status.name, name, form, by=by)
        except NotPossible as error:
            wrong = str(error)
        except DatabaseError as error:
            log.warning("a push template could not be kept: %s: %s", type(error).__name__, error)
            wrong = _("The site cannot write its own tables right now.")
        form.errors.clear()
        if wrong:
            refusal = Refusal(title=_("The template was not kept"), text=wrong, advice="", status=422)
            return self.show(form, refusal, template_name=name[:200], template_wrong=wrong)
        kept = _("Kept as the template “%(name)s”. Nothing was pushed.") % {"name": write.visible(name.strip())}
        return self.show(form, kept=kept)


def _templates(queue_id: int) -> Sequence[PushTemplate]:
    """Return the templates of a queue; none while the site's tables cannot be read: the form pushes all the same."""
    try:
        with transaction.atomic():
            return push_templates.of(queue_id)
    except DatabaseError as error:
        log.warning("push templates could not be read: %s: %s", type(error).__name__, error)
        return []


def _pushed(item: Item, fifo: bool) -> str:
    if item.due_at is None:
        words = _("Enqueued %(size)s.") if fifo else _("Pushed %(size)s with priority %(priority)s.")
    elif fifo:
        words = _("Enqueued %(size)s, due %(due)s.")
    else:
        words = _("Pushed %(size)s with priority %(priority)s, due %(due)s.")
    due, priority = write.moment_with_utc(item.due_at), items.priority_short(item)
    return words % {"size": write.size(item.size), "priority": priority, "due": due}


def _source(request: HttpRequest, status: QueueStatus) -> Source:
    if like := request.GET.get("like", "")[:25_000]:
        return _like(status, like)
    if template := request.GET.get("template", "")[:20]:
        found = push_templates.get(status.id, template)
        if found is None:
            return Source(wrong=_("This template is not there any more."))
        # An empty zone is UTC, for every reader.
        fields = {**found.fields, "zone": found.fields.get("zone") or "UTC"}
        return Source(fields=fields, words=_("From the template “%(name)s”.") % {"name": write.visible(found.name)})
    return Source()


def _like(status: QueueStatus, item_id: str) -> Source:
    """Fill the form with an item's value and priority; one that hides something is not handed out by this door."""
    status, item, _beside = see(status.name, item_id)
    if item is None:
        return Source(wrong=_("The item to duplicate is not here any more. Nothing was filled in."))
    link = item_url(status.name, item.id)
    if hidden(item.raw, rules_of(status.redact)):
        wrong = _("Parts of this item's value are hidden: reveal it on its page, and copy what you need from there.")
        return Source(wrong=wrong, link=link)
    value, encoding = typed_value(item.raw)
    priority = "" if item.priority is None else str(item.priority)
    fields = {"priority": priority, "value": value, "encoding": encoding}
    return Source(fields=fields, words=_("A duplicate of the item, not pushed yet."), link=link)


@require_POST
@require(Right.ACT, harmless=lambda _request: True)
def check_value(request: HttpRequest, name: str) -> HttpResponse:
    """Say whether what was typed is JSON and how many bytes it has."""
    form = PushForm(request.POST, status=status_of(name))
    form.is_valid()
    return render(request, "dashboard/_check.html", {"check": check(form.payload)})


@require_POST
@require(Right.ACT)
def forget_template(request: HttpRequest, name: str, number: str) -> HttpResponse:
    """Delete a template."""
    status = status_of(name)
    try:
        push_templates.forget(status.id, status.name, number, by=Author(name=request.user.get_username()))
    except NotPossible as error:
        toasts.failed(request, str(error))
    else:
        toasts.done(request, _("The template is deleted. Nothing else was changed."))
    return leave(f"{queue_url(name)}push/")
