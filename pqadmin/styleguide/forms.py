"""Forms with extreme and hostile input, for the styleguide."""

from datetime import datetime

from django import forms

from pqadmin.dashboard.items.action_forms import PopForm, ReprioritizeForm, RescheduleForm
from pqadmin.dashboard.queue.forms import CreateForm, DeleteForm, DetachForm, PauseForm, RenameForm
from pqadmin.pages.push_form import PushForm
from queues import QueueStatus


def sample_forms(status: QueueStatus, now: datetime, hostile: str) -> dict[str, forms.Form]:
    """Return forms by the name of their action, most of them with errors."""
    confirming = {"confirm": hostile, "reason": "n" * 501}
    made = {
        "push": PushForm(
            {"value": "{not json", "priority": "1e400", "encoding": "base64"}, status=status, auto_id="push-%s"
        ),
        "when": PushForm({"when": "due", "due": "2026-03-29T02:30", "zone": hostile}, status=status, auto_id="when-%s"),
        "create": CreateForm(
            {"name": "a/b", "kind": "priority", "priority_type": "int", "edges": "3, 2, x"}, auto_id="create-%s"
        ),
        "pause": PauseForm({"lasting": "at", "at": "2020-01-01T00:00"}, auto_id="pause-%s"),
        "rename": RenameForm({"name": hostile}, auto_id="rename-%s"),
        "delete": DeleteForm(confirming, name=status.name, auto_id="delete-%s"),
        "purge": DeleteForm(confirming, name=hostile, auto_id="purge-%s"),
        "pop": PopForm({"reason": "n" * 501}, auto_id="pop-%s"),
        "detach": DetachForm(auto_id="detach-%s"),
        "reprioritize": ReprioritizeForm(
            {"how": "shift", "shift": "1e400"}, fifo=False, priority_type="int", auto_id="reprioritize-%s"
        ),
        "reschedule": RescheduleForm({"when": "in", "amount": hostile}, auto_id="reschedule-%s"),
    }
    for form in made.values():
        form.is_valid()
        for field in form.fields.values():  # a page of many forms begins at its top
            field.widget.attrs.pop("autofocus", None)
    return made
