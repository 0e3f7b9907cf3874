"""Definitions of the actions on items: what each is for, its buttons, what it would do, what it did, and why not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from pqadmin.display import format as write
from pqadmin.display.addresses import item_url, queue_url
from pqadmin.display.words import item_state_word
from queues import Changed, Item, QueueStatus
from queues.errors import display_name

#: A text, translated when it is shown; those with a plural choose it by `count`.
_Words = Any
_NO_LEASES = gettext_lazy("other programs would not respect a lease.")
_NEVER_DELAYED = gettext_lazy("its items are never delayed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAct:
    """An act on items."""

    verb: str
    #: States that it is for; "attached" for the items of attached queues.
    states: tuple[str, ...]
    icon: str
    #: What its button on a page says, what its own page asks, and the button there.
    label: _Words
    title: _Words
    button: _Words
    #: What it would do, and what it did.
    effect: _Words
    done: _Words
    #: For items of which state it is, and why attached queues do not have it.
    only: _Words = ""
    not_attached: _Words = _NO_LEASES
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


#: In the order of their buttons; what needs no confirmation first.
ITEM_ACTS = {
    each.verb: each
    for each in (
        ItemAct(
            verb="promote",
            states=("delayed",),
            icon="play",
            label=gettext_lazy("Promote…"),
            title=ngettext_lazy("Make this item ready now?", "Make %(n)s items ready now?", "count"),
            button=ngettext_lazy("Promote it", "Promote %(n)s items", "count"),
            effect=ngettext_lazy(
                "It does not wait for its due time: it goes behind all of its priority that are ready.",
                "They do not wait for their due times: each goes behind all of its priority that are ready.",
                "count",
            ),
            done=ngettext_lazy("Promoted the item: it is ready.", "Promoted %(n)s items: they are ready.", "count"),
            only=gettext_lazy("Only delayed items are promoted."),
            not_attached=_NEVER_DELAYED,
        ),
        ItemAct(
            verb="reschedule",
            states=("delayed",),
            icon="clock",
            label=gettext_lazy("Reschedule…"),
            title=ngettext_lazy("Reschedule this item", "Reschedule %(n)s items", "count"),
            button=ngettext_lazy("Reschedule it", "Reschedule %(n)s items", "count"),
            effect=ngettext_lazy(
                "Its priority stays. A due time that has passed makes it ready at once.",
                "Their priorities stay. A due time that has passed makes them ready at once.",
                "count",
            ),
            done=ngettext_lazy("Rescheduled the item.", "Rescheduled %(n)s items.", "count"),
            only=gettext_lazy("Only delayed items are rescheduled."),
            not_attached=_NEVER_DELAYED,
            asks=True,
        ),
        ItemAct(
            verb="retry",
            states=("dead",),
            icon="undo",
            label=gettext_lazy("Retry…"),
            title=ngettext_lazy("Retry this item?", "Retry %(n)s items?", "count"),
            button=ngettext_lazy("Retry it", "Retry %(n)s items", "count"),
            effect=ngettext_lazy(
                "It goes back to its old place with all its attempts before it.",
                "They go back to their old places with all their attempts before them.",
                "count",
            ),
            done=ngettext_lazy(
                "Retried the item: it became ready again.", "Retried %(n)s items: they became ready again.", "count"
            ),
            only=gettext_lazy("Only dead items are retried."),
            not_attached=gettext_lazy("its items are never dead."),
        ),
        ItemAct(
            verb="release",
            states=("leased",),
            icon="undo",
            label=gettext_lazy("Release…"),
            title=ngettext_lazy("Take this item back?", "Take %(n)s items back?", "count"),
            button=ngettext_lazy("Release it", "Release %(n)s items", "count"),
            effect=ngettext_lazy("It goes back to its old place.", "They go back to their old places.", "count"),
            done=ngettext_lazy("Took the item back from its worker.", "Took %(n)s items back from workers.", "count"),
            only=gettext_lazy("Only leased items are released."),
            grave=True,
        ),
        ItemAct(
            verb="move",
            states=("ready", "delayed", "dead", "attached"),
            icon="move",
            label=gettext_lazy("Move…"),
            title=ngettext_lazy("Move this item", "Move %(n)s items", "count"),
            button=ngettext_lazy("Move it", "Move %(n)s items", "count"),
            effect=gettext_lazy("Value and id stay; at every moment each item is in exactly one of the two queues."),
            done=ngettext_lazy("Moved the item to %(to)s.", "Moved %(n)s items to %(to)s.", "count"),
            stays=False,
            asks=True,
        ),
        ItemAct(
            verb="reprioritize",
            states=("ready", "delayed", "dead"),
            icon="order",
            label=gettext_lazy("Re-prioritize…"),
            title=ngettext_lazy("Re-prioritize this item", "Re-prioritize %(n)s items", "count"),
            button=ngettext_lazy("Re-prioritize it", "Re-prioritize %(n)s items", "count"),
            effect=gettext_lazy("Among items of the same priority the push order stays."),
            done=ngettext_lazy("Re-prioritized the item.", "Re-prioritized %(n)s items.", "count"),
            not_attached=gettext_lazy("its items are not re-prioritized."),
            asks=True,
        ),
        ItemAct(
            verb="delay",
            states=("ready",),
            icon="clock",
            label=gettext_lazy("Delay…"),
            title=ngettext_lazy("Delay this item", "Delay %(n)s items", "count"),
            button=ngettext_lazy("Delay it", "Delay %(n)s items", "count"),
            effect=ngettext_lazy(
                "It is not popped before it is due; then it goes behind all of its priority that are ready.",
                "They are not popped before they are due; then each goes behind all of its priority that are ready.",
                "count",
            ),
            done=ngettext_lazy("Delayed the item until it is due.", "Delayed %(n)s items until they are due.", "count"),
            only=gettext_lazy("Only ready items are delayed."),
            not_attached=_NEVER_DELAYED,
            asks=True,
        ),
        ItemAct(
            verb="lease",
            states=("ready",),
            icon="taken",
            label="",
            title=ngettext_lazy("Lease this item", "Lease %(n)s items", "count"),
            button=ngettext_lazy("Lease it", "Lease %(n)s items", "count"),
            effect=gettext_lazy(
                "No worker gets it while you hold it. Not done by then, it goes back to its place by itself."
            ),
            done=gettext_lazy("You hold the item until %(at)s: say that it is done, or release it, on this page."),
            only=gettext_lazy("Only ready items are leased."),
            shows_value=True,
            undoable=False,
            single=True,
        ),
        ItemAct(
            verb="ack",
            states=("leased",),
            icon="check",
            label=gettext_lazy("Acknowledge…"),
            title=ngettext_lazy("Is this item done?", "Are these %(n)s items done?", "count"),
            button=ngettext_lazy("It is done", "They are done", "count"),
            effect=gettext_lazy("It leaves the queue as if a worker had finished it."),
            done=gettext_lazy("The item is done and has left the queue."),
            only=gettext_lazy("Only leased items are acknowledged."),
            stays=False,
            shows_value=True,
            single=True,
        ),
        ItemAct(
            verb="delete",
            states=("ready", "delayed", "leased", "dead", "attached"),
            icon="trash",
            label=gettext_lazy("Delete…"),
            title=ngettext_lazy("Delete this item?", "Delete %(n)s items?", "count"),
            button=ngettext_lazy("Delete it", "Delete %(n)s items", "count"),
            effect=ngettext_lazy(
                "Only this very item goes to the trash, wherever it is.",
                "Only these very items go to the trash.",
                "count",
            ),
            done=ngettext_lazy(
                "Deleted the item. It is in the trash.", "Deleted %(n)s items. They are in the trash.", "count"
            ),
            stays=False,
            grave=True,
            shows_value=True,
        ),
    )
}
#: What re-prioritizing is in a FIFO queue.
_TO_AN_END = replace(
    ITEM_ACTS["reprioritize"],
    title=ngettext_lazy("Bring this item to an end", "Bring %(n)s items to an end", "count"),
    button=ngettext_lazy("Bring it there", "Bring %(n)s items there", "count"),
    effect=gettext_lazy("Several keep their present order there."),
)
#: Acts on the page of one item by its state, and in attached queues; two of them have pages of their own.
_ON_PAGE = {
    "ready": ("move", "reprioritize", "delay", "edit", "duplicate", "delete"),
    "delayed": ("promote", "reschedule", "move", "reprioritize", "edit", "duplicate", "delete"),
    "leased": ("ack", "release", "duplicate", "delete"),
    "dead": ("retry", "move", "edit", "duplicate", "delete"),
    "attached": ("move", "duplicate", "delete"),
}
_OWN_PAGES = {"edit": ("pencil", gettext_lazy("Edit…")), "duplicate": ("copy", gettext_lazy("Duplicate…"))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A link to the page of an act."""

    verb: str
    label: str
    icon: str
    url: str
    #: The form fits into the page; without script it is the same page of its own.
    inline: bool


def buttons(status: QueueStatus, item: Item, user: str) -> list[Button]:
    """Return the acts that fit an item, the one that is meant most first."""
    queue, found = queue_url(status.name), []
    for verb in _ON_PAGE.get("attached" if status.attached else item.state, ()):
        if verb == "ack" and item.worker != user:
            continue  # only its worker acknowledges it
        if verb == "reprioritize" and status.kind == "fifo" and item.state != "ready":
            continue  # of a FIFO queue only ready items have a place to be brought to: the front or the back
        if verb == "edit":
            url = f"{item_url(status.name, item.id)}edit/"
        elif verb == "duplicate":
            url = f"{queue}push/?{urlencode({'like': item.id})}"
        else:
            url = f"{queue}act/?{urlencode({'act': verb, 'id': item.id})}"
        inline = verb in ITEM_ACTS
        icon, label = (ITEM_ACTS[verb].icon, ITEM_ACTS[verb].label) if inline else _OWN_PAGES[verb]
        found.append(Button(verb=verb, label=str(label), icon=icon, url=url, inline=inline))
    return found


def acts_in(state: str, status: QueueStatus | None = None) -> list[ItemAct]:
    """Return the acts on chosen items of a list, in the order of their buttons; none where a state has none."""
    acts = [act for act in ITEM_ACTS.values() if state in act.states and not act.single]
    if status is not None and status.attached:
        return [act for act in acts if act.attached]
    return [act for act in acts if act.verb != "reprioritize" or status is None or status.kind != "fifo"]


def in_fifo(act: ItemAct) -> ItemAct:
    """Return what an act is in a FIFO queue: re-prioritizing brings items to an end there."""
    return _TO_AN_END if act.verb == "reprioritize" else act


def counted(words: _Words, n: int, **values: str) -> str:
    """Return the words of an act for so many items."""
    return str(words % {"count": n, "n": write.number(n), **values})


def consequence(act: ItemAct, items: Sequence[Item], *, max_attempts: int | None) -> str:
    """Say what an act would do to these items of a queue where items die after `max_attempts`."""
    if not items:
        return ""
    dying = 0 if max_attempts is None else sum(item.attempts >= max_attempts for item in items)
    losing = "" if act.verb == "ack" else _losing(items)
    dies = act.verb == "release" and dying
    effect = _dying(len(items), dying) if dies else counted(act.effect, len(items))
    return f"{losing} {effect}".strip()


def _dying(n: int, dying: int) -> str:
    """Say that items go to the dead, as this was their last attempt."""
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
    named = _workers(workers)
    if len(workers) > 3:
        named += ", " + _("%(n)s more") % {"n": write.number(len(workers) - 3)}
    if workers.total() == 1:
        return _("%(worker)s loses the lease: its acknowledgement is refused from then on.") % {"worker": named}
    return ngettext(
        "%(workers)s loses %(n)s leases: acknowledging them is refused from then on.",
        "%(workers)s lose %(n)s leases: acknowledging them is refused from then on.",
        len(workers),
    ) % {"workers": named, "n": write.number(workers.total())}


def _workers(workers: "Counter[str]") -> str:
    """Name the three that hold most."""
    names = (write.shorten(write.visible(name), 60) for name, _n in workers.most_common(3))
    return ", ".join(name or _("an unnamed worker") for name in names)


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
    n, why, release = len(items), str(act.only), ""
    workers = _workers(Counter(item.worker for item in items))
    if reason == "other":
        text = ngettext("Another worker holds it: %(workers)s", "Other workers hold %(n)s items: %(workers)s", n)
        why = _("Only the worker that leased an item acknowledges it.")
    elif reason == "leased":
        text = ngettext("%(n)s item is in a worker’s hands", "%(n)s items are in workers’ hands", n) + ": %(workers)s"
        release = "&".join(f"id={item.id}" for item in items) if n <= 50 else ""
        if act.verb in ("move", "reprioritize"):
            why = ngettext(
                "Release it first; acknowledging it is refused from then on.",
                "Release them first; acknowledging them is refused from then on.",
                n,
            )
    else:
        text = ngettext("%(n)s item is %(state)s.", "%(n)s items are %(state)s.", n)
    values = {"n": write.number(n), "state": item_state_word(reason), "workers": workers}
    return {"text": text % values, "why": why, "release": release}


def done(act: ItemAct, changed: Changed, asked: int, typed: Mapping[str, Any]) -> str:
    """Say what an act did."""
    n = changed.count
    if n == 0:
        return _("Nothing was changed: everything was as asked already.")
    to, until = write.shorten(display_name(str(typed.get("to") or "")), 80), typed.get("held_until")
    text = counted(act.done, n, to=to, at=write.clock(until) if until else "")
    if changed.died:
        text += " " + _dying(n, changed.died)
    if n < asked:
        text += " " + ngettext("%(n)s was as asked already.", "%(n)s were as asked already.", asked - n) % {
            "n": write.number(asked - n)
        }
    return text
