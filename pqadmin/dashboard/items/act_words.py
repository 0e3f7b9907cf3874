"""The acts on items in words: what each is for, what it would do, what it did, and why not."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pqadmin.display import format as write
from pqadmin.display.words import item_state_word
from queues import Item, Lease
from queues.errors import display_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAct:
    """An act on items."""

    verb: str
    #: States that it is for; "attached" for the items of attached queues.
    states: tuple[str, ...]
    icon: str = ""
    #: The items are still in their queue afterwards.
    stays: bool = True
    #: It takes something away.
    grave: bool = False
    #: Its page shows the value openly.
    shows_value: bool = False
    #: There is something to choose, and a preview of it.
    asks: bool = False
    #: It has an entry in the trash.
    undoable: bool = True
    #: It is for one item, not for a selection.
    single: bool = False

    @property
    def attached(self) -> bool:
        """Say whether attached queues have it."""
        return "attached" in self.states


_EVERY = ("ready", "delayed", "leased", "dead", "attached")
ITEM_ACTS = {
    each.verb: each
    for each in (
        ItemAct(verb="move", states=("ready", "delayed", "dead", "attached"), stays=False, asks=True),
        ItemAct(verb="reprioritize", states=("ready", "delayed", "dead"), asks=True),
        ItemAct(verb="delete", states=_EVERY, icon="trash", stays=False, grave=True, shows_value=True),
        ItemAct(verb="promote", states=("delayed",), icon="play"),
        ItemAct(verb="reschedule", states=("delayed",), asks=True),
        ItemAct(verb="delay", states=("ready",), asks=True),
        ItemAct(verb="retry", states=("dead",), icon="undo"),
        ItemAct(verb="release", states=("leased",), icon="undo", grave=True),
        ItemAct(verb="lease", states=("ready",), icon="taken", shows_value=True, undoable=False, single=True),
        ItemAct(verb="ack", states=("leased",), icon="check", stays=False, shows_value=True, single=True),
    )
}


def title(act: ItemAct, n: int, *, fifo: bool) -> str:
    """Return the question that the page of an act asks."""
    if fifo and act.verb == "reprioritize":
        return ngettext("Bring this item to an end", "Bring %(n)s items to an end", n) % {"n": write.number(n)}
    text = {
        "move": lambda: ngettext("Move this item", "Move %(n)s items", n),
        "reprioritize": lambda: ngettext("Re-prioritize this item", "Re-prioritize %(n)s items", n),
        "delete": lambda: ngettext("Delete this item?", "Delete %(n)s items?", n),
        "promote": lambda: ngettext("Make this item ready now?", "Make %(n)s items ready now?", n),
        "reschedule": lambda: ngettext("Reschedule this item", "Reschedule %(n)s items", n),
        "delay": lambda: ngettext("Delay this item", "Delay %(n)s items", n),
        "retry": lambda: ngettext("Retry this item?", "Retry %(n)s items?", n),
        "release": lambda: ngettext("Take this item back?", "Take %(n)s items back?", n),
        "lease": lambda: ngettext("Lease this item", "Lease %(n)s items", n),
        "ack": lambda: ngettext("Is this item done?", "Are these %(n)s items done?", n),
    }[act.verb]()
    return text % {"n": write.number(n)}


def button(act: ItemAct, n: int, *, fifo: bool) -> str:
    """Return what the button says."""
    if fifo and act.verb == "reprioritize":
        return ngettext("Bring it there", "Bring %(n)s items there", n) % {"n": write.number(n)}
    text = {
        "move": lambda: ngettext("Move it", "Move %(n)s items", n),
        "reprioritize": lambda: ngettext("Re-prioritize it", "Re-prioritize %(n)s items", n),
        "delete": lambda: ngettext("Delete it", "Delete %(n)s items", n),
        "promote": lambda: ngettext("Promote it", "Promote %(n)s items", n),
        "reschedule": lambda: ngettext("Reschedule it", "Reschedule %(n)s items", n),
        "delay": lambda: ngettext("Delay it", "Delay %(n)s items", n),
        "retry": lambda: ngettext("Retry it", "Retry %(n)s items", n),
        "release": lambda: ngettext("Release it", "Release %(n)s items", n),
        "lease": lambda: ngettext("Lease it", "Lease %(n)s items", n),
        "ack": lambda: ngettext("It is done", "They are done", n),
    }[act.verb]()
    return text % {"n": write.number(n)}


def consequence(act: ItemAct, items: Sequence[Item], *, fifo: bool, max_attempts: int | None) -> str:
    """Say what an act would do to these items of a queue whose items die after `max_attempts`."""
    if not items:
        return ""
    n = len(items)
    texts: dict[str, Callable[[], str]] = {
        "move": lambda: _("Value and id stay; at every moment each item is in exactly one of the two queues."),
        "reprioritize": lambda: (
            _("Several keep their present order there.")
            if fifo
            else _("Among items of the same priority the push order stays.")
        ),
        "delete": lambda: ngettext(
            "Only this very item goes to the trash, wherever it is.", "Only these very items go to the trash.", n
        ),
        "promote": lambda: ngettext(
            "It does not wait for its due time: it goes behind all of its priority that are ready.",
            "They do not wait for their due times: each goes behind all of its priority that are ready.",
            n,
        ),
        "reschedule": lambda: ngettext(
            "Its priority stays. A due time that has passed makes it ready at once.",
            "Their priorities stay. A due time that has passed makes them ready at once.",
            n,
        ),
        "delay": lambda: ngettext(
            "It is not popped before it is due; then it goes behind all of its priority that are ready.",
            "They are not popped before they are due; then each goes behind all of its priority that are ready.",
            n,
        ),
        "retry": lambda: ngettext(
            "It goes back to its old place with all its attempts before it.",
            "They go back to their old places with all their attempts before them.",
            n,
        ),
        "release": lambda: _given_back(items, max_attempts),
        "lease": lambda: _(
            "No worker gets it while you hold it. Not done by then, it goes back to its place by itself."
        ),
        "ack": lambda: _("It leaves the queue as if a worker had finished it."),
    }
    losing = "" if act.verb == "ack" else _losing(items)
    return " ".join(filter(None, [losing, texts[act.verb]()]))


def _given_back(items: Sequence[Item], max_attempts: int | None) -> str:
    """Say where items go that are taken back: those whose last attempt this was to the dead."""
    n = len(items)
    dying = 0 if max_attempts is None else sum(item.attempts >= max_attempts for item in items)
    if not dying:
        return ngettext("It goes back to its old place.", "They go back to their old places.", n)
    return _dying(n, dying)


def _dying(n: int, dying: int) -> str:
    if dying == n:
        return ngettext(
            "This was its last attempt: it goes to the dead.", "These were their last attempts: they go to the dead.", n
        )
    return ngettext(
        "The other items go back to their places; %(n)s, whose last attempt this was, goes to the dead.",
        "The other items go back to their places; %(n)s, whose last attempts these were, go to the dead.",
        dying,
    ) % {"n": write.number(dying)}


def _losing(items: Sequence[Item]) -> str:
    """Say which workers lose items."""
    workers = Counter(item.worker for item in items if item.state == "leased")
    if not workers:
        return ""
    named = [_worker(worker) for worker, _n in workers.most_common(3)]
    if len(workers) > 3:
        named.append(_("%(n)s more") % {"n": write.number(len(workers) - 3)})
    taken = sum(workers.values())
    if taken == 1:
        return _("%(worker)s loses the lease: its acknowledgement is refused from then on.") % {"worker": named[0]}
    return ngettext(
        "%(workers)s loses %(n)s leases: acknowledging them is refused from then on.",
        "%(workers)s lose %(n)s leases: acknowledging them is refused from then on.",
        len(workers),
    ) % {"workers": ", ".join(named), "n": write.number(taken)}


def _worker(name: str) -> str:
    return write.shorten(write.visible(name), 60) or _("an unnamed worker")


def why_not(act: ItemAct, item: Item, user: str) -> str | None:
    """Say why an act is not for an item; None if it is."""
    state = "attached" if item.foreign is not None else item.state
    if state not in act.states:
        return state
    return "other" if act.verb == "ack" and item.worker != user else None


def unfit(act: ItemAct, items: Sequence[Item], user: str) -> list[dict[str, Any]]:
    """Say which items an act is not for, by reason, and what can be done about it."""
    by_reason: dict[str, list[Item]] = {}
    for item in items:
        reason = why_not(act, item, user)
        if reason is not None:
            by_reason.setdefault(reason, []).append(item)
    return [_unfit(act, reason, some) for reason, some in by_reason.items()]


def _unfit(act: ItemAct, reason: str, items: list[Item]) -> dict[str, Any]:
    n = len(items)
    values = {"n": write.number(n), "state": item_state_word(reason)}
    release = ""
    if reason == "other":
        holders = Counter(item.worker for item in items)
        values["workers"] = ", ".join(_worker(worker) for worker, _n in holders.most_common(3))
        text = (
            ngettext("Another worker holds it: %(workers)s", "Other workers hold %(n)s items: %(workers)s", n) % values
        )
    elif reason == "leased":
        text = ngettext("%(n)s item is in a worker’s hands", "%(n)s items are in workers’ hands", n) % values
        holders = Counter(item.worker for item in items)
        text += ": " + ", ".join(_worker(worker) for worker, _n in holders.most_common(3))
        release = "&".join(f"id={item.id}" for item in items) if n <= 50 else ""
    else:
        text = ngettext("%(n)s item is %(state)s.", "%(n)s items are %(state)s.", n) % values
    return {"text": text, "why": _why(act, reason, n), "release": release}


def _why(act: ItemAct, reason: str, n: int) -> str:
    if reason == "leased" and act.verb in ("move", "reprioritize"):
        return ngettext(
            "Release it first; acknowledging it is refused from then on.",
            "Release them first; acknowledging them is refused from then on.",
            n,
        )
    if reason == "other":
        return _("Only the worker that leased an item acknowledges it.")
    only = {
        "promote": _("Only delayed items are promoted."),
        "reschedule": _("Only delayed items are rescheduled."),
        "delay": _("Only ready items are delayed."),
        "retry": _("Only dead items are retried."),
        "release": _("Only leased items are released."),
        "ack": _("Only leased items are acknowledged."),
        "lease": _("Only ready items are leased."),
    }
    return only.get(act.verb, "")


def why_not_attached(act: ItemAct) -> str:
    """Say in the core's words why an attached queue has no such act."""
    return {
        "reprioritize": _("its items are not re-prioritized."),
        "promote": _("its items are never delayed."),
        "reschedule": _("its items are never delayed."),
        "delay": _("its items are never delayed."),
        "retry": _("its items are never dead."),
    }.get(act.verb, _("other programs would not respect a lease."))


def done(act: ItemAct, n: int, asked: int, typed: Mapping[str, Any], *, died: int = 0) -> str:
    """Say what an act did; `died` of its items are dead by it."""
    if n == 0:
        return _("Nothing was changed: everything was as asked already.")
    to = write.shorten(display_name(str(typed.get("to") or "")), 80)
    text = {
        "move": lambda: ngettext("Moved the item to %(to)s.", "Moved %(n)s items to %(to)s.", n),
        "reprioritize": lambda: ngettext("Re-prioritized the item.", "Re-prioritized %(n)s items.", n),
        "delete": lambda: ngettext(
            "Deleted the item. It is in the trash.", "Deleted %(n)s items. They are in the trash.", n
        ),
        "promote": lambda: ngettext("Promoted the item: it is ready.", "Promoted %(n)s items: they are ready.", n),
        "reschedule": lambda: ngettext("Rescheduled the item.", "Rescheduled %(n)s items.", n),
        "delay": lambda: ngettext("Delayed the item until it is due.", "Delayed %(n)s items until they are due.", n),
        "retry": lambda: ngettext(
            "Retried the item: it is ready again.", "Retried %(n)s items: they are ready again.", n
        ),
        "release": lambda: ngettext("Took the item back from its worker.", "Took %(n)s items back from workers.", n),
        "ack": lambda: _("The item is done and has left the queue."),
    }[act.verb]()
    for name, value in (("n", write.number(n)), ("to", to)):
        text = text.replace(f"%({name})s", value)
    if died:
        text += " " + _dying(n, died)
    if n < asked:
        text += " " + ngettext("%(n)s was as asked already.", "%(n)s were as asked already.", asked - n) % {
            "n": write.number(asked - n)
        }
    return text


def held(lease: Lease | None) -> str:
    """Say that an operator holds an item."""
    until = "" if lease is None else write.clock(lease.expires_at)
    return _("You hold the item until %(at)s: say that it is done, or release it, on this page.") % {"at": until}
