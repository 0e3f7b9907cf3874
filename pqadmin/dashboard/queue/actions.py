"""Actions on a whole queue: create, pause, resume, rename, delete."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pqadmin.dashboard.jobs.words import JobsHere, jobs_here
from pqadmin.dashboard.queue.forms import CreateForm, DeleteForm, PauseForm, RenameForm
from pqadmin.display import format as write
from pqadmin.display.addresses import next_of, queue_url
from pqadmin.display.errors import said
from pqadmin.live.words import pause_words
from pqadmin.pages import toasts, visibility
from pqadmin.pages.action_view import ActionView, QueueActionView, hidden_fields
from pqadmin.pages.queue_context import paused
from pqadmin.pages.refusals import NotPossible
from pqadmin.store import store_now
from queues import Queue, ReadTransaction
from queues.admin import to_ms
from queues.errors import BadPriority, QueueError, StoreError, display_name


class CreateView(ActionView):
    """Creates a queue."""

    action = "create"
    template_name = "dashboard/new_queue.html"
    form_class = CreateForm

    def perform(self, form: CreateForm) -> str:
        """Create the queue; its page, or the import of a file, comes next."""
        data = form.cleaned_data
        visibility.new_name(visibility.scope(self.request), data["name"])
        queue = self.actions.create_queue(
            data["name"],
            kind=data["kind"],
            priority_type=data["priority_type"] or "int",
            bands=form.parsed_edges,
            codec=data["codec"] or "bytes",
        )
        toasts.done(self.request, _("%(queue)s is ready for its first item.") % {"queue": display_name(queue.name)})
        return self.answer_of(queue)

    def refused(self, form: CreateForm, error: QueueError | StoreError) -> HttpResponse:
        """Show the form again; its only priorities are the edges of its bands."""
        if isinstance(error, BadPriority):
            form.add_error("edges", said(error))
        return super().refused(form, error)

    def answer_of(self, result: Queue) -> str:
        """Return the next page."""
        return queue_url(result.name) + ("push/many/" if self.request.POST.get("then") == "file" else "")

    def get_initial(self) -> dict[str, Any]:
        """Suggest a name that the address gives."""
        return {"name": self.request.GET.get("name", "")[:200]}

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        then_file = "file" in (self.request.GET.get("then"), self.request.POST.get("then"))
        return super().get_context_data(then_file=then_file, **more)


class PausingView(QueueActionView):
    """Pauses or resumes a queue, and goes back to the page of the site that the link to it names."""

    @property
    def home(self) -> str:
        """The page that the link was on, or the queue's."""
        return next_of(self.request) or self.url

    @property
    def hidden(self) -> Mapping[str, str]:
        """The hidden fields of a new form, with the page to go back to."""
        return {**super().hidden, **self.going_back}

    @property
    def going_back(self) -> Mapping[str, str]:
        """The page to go back to, as a field."""
        return {"next": self.home} if self.home != self.url else {}

    def answer_of(self, result: Any) -> str:
        """Return the page to go back to."""
        return self.home

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        return super().get_context_data(post_to=f"{self.url}{self.action}/", back=self.home, **more)


class PauseView(PausingView):
    """Stops pops and leases of a queue, with a reason, and until a moment if one is given."""

    action, title = "pause", gettext_lazy("Pause")
    fragment_name = "dashboard/_pause.html"
    form_class = PauseForm
    #: The field with the pause that was in force when the form was shown.
    seen_field = "seen_pause"
    why_not_attached = gettext_lazy("it cannot be paused, as other programs would go on taking.")

    @property
    def hidden(self) -> Mapping[str, str]:
        """The hidden fields of a new form, with the pause that it shows."""
        pause = self.status.pause
        return {**super().hidden, self.seen_field: "" if pause is None else str(to_ms(pause.since))}

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows, with the pause that is in force."""
        pause, now = self.status.pause, store_now()
        told = pause_words(pause, now, whole=True) if pause is not None and paused(self.status, now) else ""
        return super().get_context_data(pause_now=told, **more)

    def perform(self, form: PauseForm) -> str:
        """Pause the queue, unless that would take the place of a pause that the person has not seen."""
        pause, now = self.status.pause, store_now()
        seen = pause is None or self.request.POST.get(self.seen_field) == str(to_ms(pause.since))
        if pause is not None and not seen and paused(self.status, now):
            words = _("Nothing was changed: it is %(pause)s. Send this again to put yours in its place.")
            raise NotPossible(words % {"pause": pause_words(pause, now, whole=True)})
        self.actions.pause(self.name, reason=form.cleaned_data["reason"], until=form.until, expect_id=self.queue_id)
        until = "" if form.until is None else " " + _("It resumes %(at)s.") % {"at": write.moment_with_utc(form.until)}
        toasts.done(
            self.request,
            _("Paused: nothing is taken, pushes go on.") + until,
            label=_("Resume"),
            action=f"{self.url}resume/",
            fields={
                **hidden_fields(self.request, "resume", self.status),
                **self.going_back,
                ResumeView.paused_by_field: self.username,
            },
        )
        return self.home


class ResumeView(PausingView):
    """Lets items of a paused queue be taken again."""

    action, title = "resume", gettext_lazy("Resume")
    fragment_name = "dashboard/_resume.html"
    #: The field with the person that set the pause to be lifted; without it, any pause is lifted.
    paused_by_field = "paused_by"
    why_not_attached = gettext_lazy("it is never paused.")

    @property
    def hidden(self) -> Mapping[str, str]:
        """The hidden fields of a new form, with the person that set the pause that it shows."""
        pause = self.status.pause
        return {**super().hidden, **({} if pause is None else {self.paused_by_field: pause.by})}

    def perform(self, form: Any) -> str:
        """Resume the queue, unless another person has paused it anew since."""
        pause, now = self.status.pause, store_now()
        other = pause is not None and self.request.POST.get(self.paused_by_field, pause.by) != pause.by
        if pause is not None and other and paused(self.status, now):
            words = _("Nothing was changed: it is %(pause)s. Send this again to resume it all the same.")
            raise NotPossible(words % {"pause": pause_words(pause, now, whole=True)})
        self.actions.resume(self.name, expect_id=self.queue_id)
        toasts.done(self.request, _("Resumed: items can be taken again."))
        return self.home

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows: why the queue is paused."""
        pause = self.status.pause
        return super().get_context_data(why=pause and pause_words(pause, store_now(), whole=True), **more)


class RenameView(QueueActionView):
    """Gives a queue another name; its items, its audit and open handles stay."""

    action, title = "rename", gettext_lazy("Rename")
    fragment_name = "dashboard/_rename.html"
    form_class = RenameForm

    def get_initial(self) -> dict[str, Any]:
        """Start with the present name."""
        return {"name": self.status.name}

    def perform(self, form: RenameForm) -> str:
        """Rename the queue; its page has another address then."""
        visibility.new_name(visibility.scope(self.request), form.cleaned_data["name"])
        queue = self.actions.rename_queue(self.name, form.cleaned_data["name"], expect_id=self.queue_id)
        toasts.done(
            self.request,
            _("Renamed from %(old)s.") % {"old": display_name(self.name)},
            label=_("Name it back"),
            action=f"{queue_url(queue.name)}rename/",
            fields={"name": self.status.name, **hidden_fields(self.request, "rename", self.status)},
        )
        return self.answer_of(queue)

    def answer_of(self, result: Queue) -> str:
        """Return the queue's new address."""
        return queue_url(result.name)


class EmptyingView(QueueActionView):
    """Puts a queue or its items into the trash after its name was typed."""

    form_class = DeleteForm
    here: JobsHere

    @property
    def depth(self) -> int | None:
        """How many items the confirmation shows."""
        return self.status.totals.ready

    def read(self, tr: ReadTransaction) -> Queue:
        """Read the bulk jobs of the queue too."""
        queue = super().read(tr)
        self.here = jobs_here(self.request, self.status.id, tr=tr)
        return queue

    def get_form_kwargs(self) -> dict[str, Any]:
        """Ask for the queue's name."""
        return {**super().get_form_kwargs(), "name": self.status.name}

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        return super().get_context_data(
            depth=self.depth, tolerance=visibility.tolerated(self.depth or 0), here=self.here, **more
        )

    def confirmed(self, form: DeleteForm) -> dict[str, Any]:
        """Return what was confirmed, for the action."""
        data = form.cleaned_data
        return {
            "confirm": data["confirm"],
            "expect_depth": data["depth"],
            "tolerance": visibility.tolerated(data["depth"]),
            "expect_id": self.queue_id,
            "reason": data["reason"],
        }

    def answer_of(self, result: Any) -> str:
        """Return the trash: what was taken can be restored there."""
        return reverse("dashboard:trash")


class DeleteView(EmptyingView):
    """Puts a queue into the trash."""

    action, title = "delete", gettext_lazy("Delete")
    fragment_name = "dashboard/_delete.html"
    why_not_attached = gettext_lazy("detach it instead, its items stay where they are.")

    def perform(self, form: DeleteForm) -> str:
        """Delete the queue."""
        trash_id = self.actions.delete_queue(self.name, **self.confirmed(form))
        text = _("Deleted %(queue)s. It is in the trash with all its items.") % {"queue": display_name(self.name)}
        toasts.undoable(self.request, text, trash_id)
        return reverse("dashboard:overview")
