"""Actions on a group of the overview: pause its queues, resume them. One transaction, one audit record a queue."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from pqadmin.accounts.scope import scope_of
from pqadmin.dashboard.queue.actions import ResumeView
from pqadmin.dashboard.queue.forms import PauseForm
from pqadmin.display import format as write
from pqadmin.live.monitor import get_monitor
from pqadmin.pages import form_idempotency, queue_groups, toasts
from pqadmin.pages.action_view import ActionView, purpose_of
from pqadmin.pages.refusals import Refusal
from pqadmin.store import get_store
from queues import Actions, QueueStatus
from queues.errors import display_name

_ID = re.compile("[0-9]{1,19}")


class GroupView(ActionView):
    """An action on the queues of a group that the user may act on; of a sent form, on those that it showed."""

    unavailable_name = "dashboard/_back.html"
    #: The queues that the action changes.
    queues: Sequence[QueueStatus] = ()
    #: How many queues the group has that the user may act on, those that stay as they are included.
    members = 0
    #: Paused queues, or running ones, are changed.
    of_paused: ClassVar[bool]
    #: What is said where there is none.
    nothing: Any

    @property
    def label(self) -> str:
        """The group as its heading names it."""
        return self.request.GET.get("group", self.request.POST.get("group", ""))[:2_000]

    @property
    def subject(self) -> str:
        """The group."""
        return self.label

    @property
    def home(self) -> str:
        """The overview by group."""
        return reverse("dashboard:overview") + "?group=group"

    @property
    def hidden(self) -> Mapping[str, str]:
        """The hidden fields of a new form: the group, and the queues that the page shows."""
        return {form_idempotency.FIELD: self.number, **self.shown}

    @property
    def shown(self) -> Mapping[str, str]:
        """The group and its queues, as fields."""
        return {"group": self.label, "queues": " ".join(str(status.id) for status in self.queues)}

    @cached_property
    def asked(self) -> frozenset[int]:
        """The ids of the queues that the form showed."""
        return frozenset(int(each) for each in self.request.POST.get("queues", "").split() if _ID.fullmatch(each))

    def load(self) -> None:
        """Read the queues of the group."""
        monitor, may = get_monitor(), scope_of(self.request.user)
        monitor.read_directory()
        asked = self.asked if self.request.method == "POST" else None
        group = queue_groups.read(may, self.label, monitor.board.directory, of_paused=self.of_paused, asked=asked)
        self.members, self.queues = group.members, group.queues

    def unavailable(self) -> Refusal | None:
        """Return why there is nothing to do."""
        if self.members > queue_groups.MOST:
            text = _("The group has %(n)s; at most %(most)s are changed at once. Nothing was changed.")
            text %= {"n": write.number(self.members), "most": write.number(queue_groups.MOST)}
            return Refusal(title=_("Too many queues"), text=text, advice="", status=422)
        if not self.queues:
            return Refusal(title=str(self.nothing), text=_("Nothing was changed."), advice="", status=404)
        return None

    def each(self, actions: Actions, status: QueueStatus, form: Any) -> None:
        """Change one queue."""
        raise NotImplementedError

    def perform(self, form: Any) -> str:
        """Change all queues in one transaction."""
        queue_groups.change(
            self.queues,
            lambda tr: get_store().actions(self.username, tr=tr, key=self.key),
            lambda actions, status: self.each(actions, status, form),
        )
        self.say()
        return self.home

    def say(self) -> None:
        """Say on the next page what was done."""
        raise NotImplementedError

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Return what the page shows."""
        label = self.label or _("without a group")
        return super().get_context_data(
            url=self.home,
            back=self.home,
            post_to=f"{self.request.path}?{urlencode({'group': self.label})}",
            name_group=label,
            name_rest="",
            names=[display_name(status.name) for status in self.queues],
            rest=self.members - len(self.queues),
            **more,
        )


class PauseGroupView(GroupView):
    """Pauses the queues of a group, with a reason."""

    action, title = "pause", gettext_lazy("Pause")
    fragment_name = "dashboard/_pause.html"
    form_class = PauseForm
    of_paused = False
    nothing = gettext_lazy("No queue of this group can be paused")

    def each(self, actions: Actions, status: QueueStatus, form: PauseForm) -> None:
        """Pause one queue."""
        actions.pause(status.name, reason=form.cleaned_data["reason"], until=form.until, expect_id=status.id)

    def say(self) -> None:
        """Say how many were paused, and offer to resume the same ones."""
        n = len(self.queues)
        text = ngettext("Paused %(n)s queue: pushes go on.", "Paused %(n)s queues: pushes go on.", n)
        toasts.done(
            self.request,
            text % {"n": write.number(n)},
            label=_("Resume"),
            action=reverse("dashboard:resume-group"),
            fields={
                form_idempotency.FIELD: form_idempotency.number(self.request, purpose_of("resume", self.subject)),
                ResumeView.paused_by_field: self.username,
                **self.shown,
            },
        )


class ResumeGroupView(GroupView):
    """Lets the paused queues of a group be taken from again."""

    action, title = "resume", gettext_lazy("Resume")
    fragment_name = "dashboard/_resume.html"
    of_paused = True

    @property
    def paused_by(self) -> str | None:
        """The person that set the pauses to be lifted; None: any."""
        return self.request.POST.get(ResumeView.paused_by_field)

    @property
    def nothing(self) -> str:
        """What is said where there is no pause to be lifted."""
        if self.paused_by is None:
            return _("No queue of this group is paused")
        return _("No queue of this group is paused by %(name)s any more") % {"name": self.paused_by}

    def load(self) -> None:
        """Read the queues of the group, but for those that another person has paused anew since."""
        super().load()
        by = self.paused_by
        self.queues = [each for each in self.queues if each.pause is not None and by in (None, each.pause.by)]

    def each(self, actions: Actions, status: QueueStatus, form: Any) -> None:
        """Resume one queue."""
        actions.resume(status.name, expect_id=status.id)

    def say(self) -> None:
        """Say how many were resumed."""
        n = len(self.queues)
        text = ngettext("Resumed %(n)s queue.", "Resumed %(n)s queues.", n)
        toasts.done(self.request, text % {"n": write.number(n)})
