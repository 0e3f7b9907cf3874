"""The buttons of an item's page: which acts fit the state that it is in, the one that is meant most first."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from pqadmin.display.addresses import item_url, queue_url
from queues import Item, QueueStatus

#: What the page of an act can be shown inside of an item's page for: longer forms get a page.
_ACTS: dict[str, tuple[str, Promise]] = {
    "promote": ("play", gettext_lazy("Promote…")),
    "reschedule": ("clock", gettext_lazy("Reschedule…")),
    "delay": ("clock", gettext_lazy("Delay…")),
    "retry": ("undo", gettext_lazy("Retry…")),
    "release": ("undo", gettext_lazy("Release…")),
    "ack": ("check", gettext_lazy("Acknowledge…")),
    "move": ("move", gettext_lazy("Move…")),
    "reprioritize": ("order", gettext_lazy("Re-prioritize…")),
    "edit": ("pencil", gettext_lazy("Edit…")),
    "duplicate": ("copy", gettext_lazy("Duplicate…")),
    "delete": ("trash", gettext_lazy("Delete…")),
}
_BY_STATE = {
    "ready": ("move", "reprioritize", "delay", "edit", "duplicate", "delete"),
    "delayed": ("promote", "reschedule", "move", "reprioritize", "edit", "duplicate", "delete"),
    "leased": ("ack", "release", "duplicate", "delete"),
    "dead": ("retry", "move", "edit", "duplicate", "delete"),
}
#: What the core offers for the items of attached queues.
_ATTACHED = ("move", "duplicate", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A link to the page of an act."""

    verb: str
    label: str
    icon: str
    url: str
    #: The form fits into the page; without script it is the same page of its own.
    inline: bool


def buttons(status: QueueStatus, item: Item, user: str) -> tuple[Button, ...]:
    """Return the acts that fit an item."""
    verbs = _ATTACHED if status.attached else _BY_STATE.get(item.state, ())
    return tuple(_button(status, item, verb) for verb in verbs if _fits(status, item, verb, user))


def act_word(verb: str) -> str:
    """Return what the button of an act says."""
    return str(_ACTS[verb][1])


def _fits(status: QueueStatus, item: Item, verb: str, user: str) -> bool:
    if verb == "ack":
        return item.worker == user  # only its worker acknowledges it
    # Of a fifo queue only ready items have a place to be brought to: the front or the back.
    return verb != "reprioritize" or status.kind != "fifo" or item.state == "ready"


def _button(status: QueueStatus, item: Item, verb: str) -> Button:
    queue, inline = queue_url(status.name), verb not in ("edit", "duplicate")
    if verb == "edit":
        url = f"{item_url(status.name, item.id)}edit/"
    elif verb == "duplicate":
        url = f"{queue}push/?{urlencode({'like': item.id})}"
    else:
        url = f"{queue}act/?{urlencode({'act': verb, 'id': item.id})}"
    return Button(verb=verb, label=act_word(verb), icon=_ACTS[verb][0], url=url, inline=inline)
