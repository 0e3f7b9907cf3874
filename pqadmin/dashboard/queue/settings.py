"""The settings of a queue, and the acts on the whole of it gathered in one place."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from pqadmin.accounts.roles import Right, can
from pqadmin.dashboard.queue.settings_form import SettingsForm
from pqadmin.dashboard.targets import fields as limits
from pqadmin.display import format as write
from pqadmin.display.words import setting_words
from pqadmin.pages import exposed_values, toasts
from pqadmin.pages.action_view import QueueActionView, blame
from pqadmin.pages.refusals import Refusal
from pqadmin.store import get_store
from queues import Queue, QueueStatus, ReadTransaction
from queues.admin import SETTING_NAMES, TargetRules
from queues.errors import QueueError, SettingsChanged, StoreError

#: Audit records that are searched for the user that changed a setting.
_LOOK_BACK = 100


class SettingsView(QueueActionView):
    """Shows the settings of a queue and changes them."""

    action, template_name = "settings", "dashboard/settings.html"
    form_class = SettingsForm
    queue: Queue
    rules: TargetRules
    #: Settings that were changed while the form was open.
    meanwhile: Sequence[Mapping[str, Any]] = ()

    def read(self, tr: ReadTransaction) -> Queue:
        """Read the settings."""
        self.queue = super().read(tr)
        self.rules = get_store().targets.rules(tr=tr)
        return self.queue

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return what the form is made with."""
        return {**super().get_form_kwargs(), "config": self.queue.config, "rules": self.rules}

    def form_valid(self, form: SettingsForm) -> HttpResponse:
        """Save the settings, unless rules of redaction are lifted that only an admin lifts."""
        refusal = _lifting(self.request, form, self.status)
        if refusal is None:
            return super().form_valid(form)
        blame(form, refusal)
        return self.show(form, refusal)

    def perform(self, form: SettingsForm) -> str:
        """Change what was changed in the form."""
        self.actions.configure(
            self.name,
            expect=form.expected,
            expect_id=self.queue_id,
            reason=form.cleaned_data["reason"],
            **form.changes,
        )
        changed = ", ".join(setting_words(name) for name in SETTING_NAMES if name in form.changes)
        saved = _("Saved: %(settings)s.") % {"settings": changed}
        toasts.done(self.request, saved if changed else _("Nothing was different: nothing was changed."))
        return self.home

    @property
    def home(self) -> str:
        """The settings."""
        return f"{self.url}settings/"

    def refused(self, form: SettingsForm, error: QueueError | StoreError) -> HttpResponse:
        """Show the form again; when settings were changed meanwhile, with both changes brought together."""
        if not isinstance(error, SettingsChanged):
            return super().refused(form, error)
        self.load()
        self.meanwhile = _meanwhile(self.queue, error.changed, form.changes)
        refusal = Refusal(
            title=_("The settings have changed meanwhile"),
            text=_("Nothing of yours was saved yet."),
            advice=_("The form below holds your changes and theirs. Look at it and save again."),
        )
        return self.show(form.merged(self.queue.config), refusal)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        config = self.queue.config
        return super().get_context_data(
            own=not config.attached,
            meanwhile=self.meanwhile,
            edges=", ".join(write.visible(write.priority(edge)) for edge in config.edges),
            **more,
        )


def _lifting(request: HttpRequest, form: SettingsForm, status: QueueStatus) -> Refusal | None:
    """Refuse to lift rules of redaction without the right of an admin."""
    if "redact" not in form.changes or can(request.user, Right.ADMIN):
        return None
    # What the form saw counts as well: the action goes on only if the settings are still those.
    seen = form.expected.get("redact")
    before = (*status.redact, *map(str, seen if isinstance(seen, list) else ()))
    rules = exposed_values.lifted(before, form.changes["redact"])
    if not rules:
        return None
    return Refusal(
        title=_("Only an admin lifts rules of redaction"),
        text=_("Values would become visible to all users by this: %(rules)s. Nothing was saved.")
        % {"rules": exposed_values.in_words(rules)},
        advice=_(
            "Keep every rule that is there as it is written, and add none with “!”. Revealing one value stays yours."
        ),
        status=403,
        field="redact",
    )


def _meanwhile(
    queue: Queue, changed: Mapping[str, tuple[object, object]], mine: Mapping[str, object]
) -> list[dict[str, Any]]:
    """Return the settings that were changed, by which user, and whether the reader of the form changed them too."""
    entries = get_store().audit.entries(queue=queue.name, limit=_LOOK_BACK).entries
    found = []
    for name, (seen, now) in changed.items():
        entry = next((e for e in entries if e.verb == "configure" and name in (e.after or {})), None)
        by, at = ("", "") if entry is None else (write.visible(entry.actor), write.clock(entry.at))
        words = {"words": setting_words(name), "before": _shown(name, seen), "after": _shown(name, now)}
        found.append({**words, "by": by, "at": at, "both": name in mine})
    return found


def _shown(name: str, value: Any) -> str:
    """Write a setting for people, on one line."""
    if name in (*limits.NAMES, "keep_finished"):
        return limits.typed_limit(name, value) or _("nothing")
    if value in ("", None, (), []):
        return _("nothing")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, int):
        return write.number(value)
    text = ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return write.shorten(write.visible(text), 120)
