"""Push several at once, pasted or from a file, with every wrong line named; as a job what no one transaction takes."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pqadmin.dashboard.jobs.words import job_url
from pqadmin.dashboard.push import pasted
from pqadmin.dashboard.push.forms import MAX_PASTED, ManyForm
from pqadmin.dashboard.push.pasted import Batch
from pqadmin.display import format as write
from pqadmin.display.errors import said
from pqadmin.files import formats
from pqadmin.files.entries import Format
from pqadmin.limits.body_size import takes_uploads
from pqadmin.pages import toasts, uploads
from pqadmin.pages.action_view import QueueActionView
from pqadmin.pages.push_form import WhenForm
from pqadmin.pages.refusals import Refusal
from queues import Item, Job, QueueStatus
from queues.admin import Pushed, codec_of

_FORMATS: Mapping[str, Format] = {"csv": "csv", "ndjson": "ndjson", "lines": "lines"}
#: Good entries that are shown before they are pushed.
_SAMPLES = 5


class PushManyView(QueueActionView):
    """Pushes what was pasted or is in a file: all of it, or nothing and what is wrong with which line."""

    action, template_name = "push-many", "dashboard/push_many.html"
    form_class = ManyForm
    preview_button = "check"
    batch: Batch | None = None
    data, wrong = b"", ""
    #: Whether it was told by the beginning alone that the lines are plain.
    guessed = False

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with."""
        return {**super().get_form_kwargs(), "status": self.status}

    def get_form(self, form_class: Any = None) -> ManyForm:
        """Return the form, with its lines looked through if it was sent."""
        form: ManyForm = super().get_form(form_class)
        if form.is_bound and self.batch is None and not self.wrong:
            self.data, self.wrong = _data(self.request, form)
            form.data = {**self.request.POST.dict(), **_shown_again(self.request, self.data)}
            self.batch = None if self.wrong else _batch(self.data, form, self.status)
            if self.batch is not None and self.batch.file_format == "lines" and form.data.get("format") != "lines":
                self.guessed, form.data = True, {**form.data, "format": "lines"}
        return form

    def form_valid(self, form: ManyForm) -> HttpResponse:
        """Push the lines if all of them are good."""
        if self.batch is None or not self.batch.good:
            return self.show(form, _not_good(self.batch, self.wrong))
        if self.guessed:
            words = _("No line names columns, so each is a value. If that is meant, push again.")
            return self.show(form, Refusal(title=_("Nothing was pushed"), text=words, advice="", status=422))
        return super().form_valid(form)

    def preview(self, form: ManyForm) -> HttpResponse:
        """Show what the lines hold."""
        if not form.is_valid():
            return self.form_invalid(form)
        good = self.batch is not None and self.batch.good
        return self.show(form, None if good else _not_good(self.batch, self.wrong))

    def perform(self, form: ManyForm) -> str:
        """Push the lines in one transaction, or begin the bulk job that pushes them."""
        assert self.batch is not None
        begin = self.actions.begin_push if self.batch.large else self.actions.push_undoably
        begun: Job | Pushed = begin(
            self.name,
            [(entry.value, entry.priority) for entry in self.batch.entries],
            delay=form.span,
            due=form.moment,
            expect_id=self.queue_id,
            reason=form.cleaned_data["reason"],
        )
        if not isinstance(begun, Job):
            toasts.undoable(self.request, _pushed_many(begun.items, self.status.kind == "fifo"), begun.trash_id)
        return self.answer_of(begun)

    def answer_of(self, result: Job | Pushed) -> str:
        """Return the page of the bulk job, or the queue's."""
        return job_url(result.id) if isinstance(result, Job) else self.url

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        batch = self.batch
        samples = batch.entries[:_SAMPLES] if batch is not None and batch.good else ()
        return super().get_context_data(
            batch=batch,
            bad=[(_place(bad.first, bad.line), said(bad.reason)) for bad in batch.bad] if batch else [],
            first=[{"entry": entry, "value": write.preview(entry.value)} for entry in samples],
            from_file="file" in self.request.FILES and bool(more["form"]["items"].value()),
            **more,
        )


push_many = takes_uploads(PushManyView.as_view())


def _data(request: HttpRequest, form: WhenForm) -> tuple[bytes, str]:
    """Return what was pasted or uploaded, and what is wrong with that."""
    file, text = request.FILES.get("file"), str(form.data.get("items") or "")
    if uploads.too_large(request):
        return b"", _("The file has more than %(size)s. Use the command below.") % {
            "size": write.size(uploads.MAX_FILE)
        }
    if file is not None and text.strip():
        return b"", _("There is a file and there is text: which one is meant? Empty one of them.")
    if file is not None:
        return file.read(), ""
    return text.replace("\r\n", "\n").encode("utf-8", "surrogatepass"), ""


def _batch(data: bytes, form: ManyForm, status: QueueStatus) -> Batch:
    chosen, file = form.data.get("format") or "", form.files.get("file")
    named = formats.format_of_name(file.name) if file is not None and file.name else None
    return pasted.read(
        data,
        file_format=_FORMATS.get(chosen, named),
        priority_type=None if status.kind == "fifo" else status.priority_type,
        codec=codec_of(status.codec, status.name),
        at_once=status.attached,
        priority=form.priority_of_lines(),
    )


def _not_good(batch: Batch | None, wrong: str) -> Refusal:
    text = wrong if batch is None else batch.wrong
    if not text and batch is not None:
        text = ngettext("%(n)s line is wrong.", "%(n)s lines are wrong.", batch.bad_count) % {
            "n": write.number(batch.bad_count)
        }
    return Refusal(title=_("Nothing was pushed"), text=text, advice="", status=422)


def _shown_again(request: HttpRequest, data: bytes) -> dict[str, str]:
    """Put a file's text into the field, as a browser sends no file twice by itself."""
    if "file" not in request.FILES:
        return {}
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    fits = 0 < len(text) <= MAX_PASTED // 2 and "\r" not in text.replace("\r\n", "")
    return {"items": text if fits else ""}


def _pushed_many(items: list[Item], fifo: bool) -> str:
    if fifo:
        words = ngettext("Enqueued %(n)s item.", "Enqueued %(n)s items.", len(items))
    else:
        words = ngettext("Pushed %(n)s item.", "Pushed %(n)s items.", len(items))
    words %= {"n": write.number(len(items))}
    due = items[0].due_at if items else None
    return words if due is None else words + " " + _("They are due %(at)s.") % {"at": write.moment_with_utc(due)}


def _place(first: int, last: int) -> str:
    if first == last:
        return _("line %(n)s") % {"n": write.number(first)}
    return _("lines %(first)s to %(last)s") % {"first": write.number(first), "last": write.number(last)}
