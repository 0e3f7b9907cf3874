"""Selections: items chosen on a page, as they were shown, and what happened to them since."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.http import QueryDict
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pqadmin.accounts.scope import Scope
from pqadmin.dashboard.items.history import latest, verb_of
from pqadmin.display import format as write
from pqadmin.display.addresses import item_url
from pqadmin.display.words import item_state_word, verb_words
from pqadmin.pages import visibility
from pqadmin.store import get_store, store_now
from queues import AuditEntry, Item
from queues.admin import Picked, Selection, time_of_ms, to_ms
from queues.errors import display_name

#: The hidden fields of a form on a selection: ids with marks, and the moment it was shown.
PICKED, SHOWN_AT = "picked", "shown_at"
#: Items of one act, the core's limit, and characters of their ids: those of attached queues are whole keys.
MOST, _MAX_TEXT = 1_000, 2_000_000
#: Items to look up in the audit.
TOLD = 8
#: Acts on many items that are named, actions among which they are looked for, and how far back where the moment at
#: which the items were shown is unknown.
_ACTS, _LOOKED_THROUGH, _RECENT = 3, 100, timedelta(hours=1)
#: Clocks of two machines may differ by so much.
_APART = timedelta(seconds=2)
#: Stands for a mark that is not the one of now.
_OTHER = "other"
#: Verbs after which an item is not in its queue any more.
_REMOVING = {"pop_min", "pop_max", "dequeue", "delete", "move", "ack", "purge"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What happened to an item since it was shown."""

    item_id: str
    text: str
    #: Where it is now; empty when unknown.
    url: str
    #: The act of a person that took it from the queue; empty: none that the reader may see.
    verb: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """What happened to the items that are not as they were shown."""

    #: Of how many items it is told.
    total: int
    gone: int
    changed: int
    told: tuple[Fate, ...]
    #: Acts on many items of the queue that may have taken some that are gone.
    acts: tuple[str, ...] = ()

    @property
    def untold(self) -> int:
        """Items that were not looked up."""
        return self.gone + self.changed - len(self.told)

    @property
    def words(self) -> str:
        """Say how many are concerned, and how those left that are gone."""
        gone, total = write.number(self.gone), write.number(self.total)
        words = []
        if self.gone:
            text = ngettext("%(n)s of %(total)s is gone: %(how)s.", "%(n)s of %(total)s are gone: %(how)s.", self.gone)
            words.append(text % {"n": gone, "total": total, "how": self._how()})
        if self.acts:
            words.append(_("Acts on many items of this queue: %(acts)s.") % {"acts": ", ".join(self.acts)})
        if self.changed:
            text = ngettext(
                "%(n)s item is not as it was shown.", "%(n)s items are not as they were shown.", self.changed
            )
            words.append(text % {"n": write.number(self.changed)})
        return " ".join(words)

    def _how(self) -> str:
        """Count the items that are gone by how they left; those that were not looked up come last."""
        verbs = [fate.verb for fate in self.told[: self.gone]]
        moved, unknown = verbs.count("move"), verbs.count("")
        removed = len(verbs) - moved - unknown
        counted = (
            (ngettext("%(n)s was moved", "%(n)s were moved", moved), moved),
            (ngettext("%(n)s was removed by a person", "%(n)s were removed by people", removed), removed),
            (
                ngettext(
                    "of %(n)s no act on it alone is recorded", "of %(n)s no act on them alone is recorded", unknown
                ),
                unknown,
            ),
            (_("%(n)s more"), self.gone - len(verbs)),
        )
        return ", ".join(words % {"n": write.number(n)} for words, n in counted if n > 0)


def wanted(data: QueryDict) -> list[str]:
    """Return the ids that an address or a form asks for, each once, in their order."""
    packed = data.get(PICKED, "")[:_MAX_TEXT]
    if packed:
        ids = [pair.rpartition(":")[0] or pair for pair in packed.split()]
    else:
        ids = [*data.getlist("id"), *data.get("ids", "")[:_MAX_TEXT].split()]
    return list(dict.fromkeys(item_id for item_id in ids if item_id))


def marks(data: QueryDict, now: Selection) -> dict[str, str] | None:
    """Return the marks by id of a form that carries a selection: those of now where they are the same.

    None for a form that carries none.
    """
    pairs = [pair.rpartition(":") for pair in data.get(PICKED, "")[:_MAX_TEXT].split()]
    sealed = {item_id: seal for item_id, _colon, seal in pairs if item_id and seal}
    if not sealed or len(sealed) != len(pairs):
        return None
    there = {each.item.id: each.etag for each in now.picked}
    return {
        item_id: there[item_id] if item_id in there and constant_time_compare(_seal(there[item_id]), seal) else _OTHER
        for item_id, seal in sealed.items()
    }


def hidden_fields(picked: Sequence[Picked]) -> dict[str, str]:
    """Return the hidden fields that carry a selection."""
    return {
        PICKED: " ".join(f"{each.item.id}:{_seal(each.etag)}" for each in picked),
        SHOWN_AT: str(to_ms(store_now())),
    }


def _seal(mark: str) -> str:
    """Return what a page holds of a mark: it does not help to guess a hidden value."""
    return salted_hmac("pqadmin.selection", mark, algorithm="sha256").hexdigest()[:32]


def states(items: Sequence[Item]) -> str:
    """Say how many items are in which state; empty when all are ready."""
    counted = Counter(item.state for item in items)
    if set(counted) <= {"ready"}:
        return ""
    return " · ".join(f"{write.number(n)} {item_state_word(state)}" for state, n in counted.items())


def fates(
    queue_name: str, seen: Mapping[str, str], now: Selection, data: QueryDict, may: Scope, *, total: int
) -> Fates | None:
    """Return what happened to items since a form showed `total`; None if they are as they were."""
    there = {each.item.id: each for each in now.picked}
    gone = [item_id for item_id in seen if item_id not in there]
    changed = [item_id for item_id in seen if item_id in there and there[item_id].etag != seen[item_id]]
    if not gone and not changed:
        return None
    text = data.get(SHOWN_AT, "")
    since = time_of_ms(int(text)) if text.isdecimal() and len(text) < 15 else None
    told = [fate_of_gone(item_id, may) for item_id in gone[:TOLD]]
    told += [_changed(queue_name, there[item_id].item, since, may) for item_id in changed[: TOLD - len(told)]]
    unknown = any(not fate.verb for fate in told[: len(gone)])
    acts = _many_taken(queue_name, since or store_now() - _RECENT, may) if unknown else ()
    return Fates(total=total, gone=len(gone), changed=len(changed), told=tuple(told), acts=acts)


def _many_taken(queue_name: str, since: datetime, may: Scope) -> tuple[str, ...]:
    """Return purges and bulk jobs that took items since a moment, newest first: no record of these names an item."""
    seen = partial(visibility.seen_entry, may)
    words = []
    for entry in get_store().audit.entries(queue=queue_name, limit=_LOOKED_THROUGH, seen=seen).entries:
        after = entry.after or {}
        if entry.at < since - _APART and after.get("status") != "running":
            continue
        values = {"by": _by(entry), "at": write.clock(entry.at)}
        if entry.verb == "purge" and "job" not in after:
            words.append(_("a purge by %(by)s at %(at)s") % values)
        elif entry.verb in _REMOVING and "job" in after:
            words.append(_("a bulk job by %(by)s at %(at)s (%(verb)s)") % (values | {"verb": verb_words(entry.verb)}))
    return tuple(words[:_ACTS])


def fate_of_gone(item_id: str, may: Scope) -> Fate:
    """Return what happened to an item that left its queue, and where it is, by the audit."""
    entry = latest(item_id, may)
    if entry is None or verb_of(entry) not in _REMOVING:
        text = _("No act on it alone is recorded: a program or an act on many items took it, or it never was here.")
        return Fate(item_id=item_id, text=text, url="")
    to = (entry.after or {}).get("to")
    if entry.verb != "move" or not isinstance(to, str):
        return Fate(item_id=item_id, text=_acted(entry), url="", verb=entry.verb)
    words, queue = _("%(by)s moved it to %(queue)s at %(at)s."), write.shorten(display_name(to), 80)
    text = words % {"by": _by(entry), "queue": queue, "at": write.clock(entry.at)}
    url = "" if item_id.startswith("key-") else item_url(to, item_id)
    return Fate(item_id=item_id, text=text, url=url, verb=entry.verb)


def _changed(queue_name: str, item: Item, since: datetime | None, may: Scope) -> Fate:
    entry = latest(item.id, may)
    words = [_now_words(item)]
    if entry is not None and since is not None and entry.at >= since - _APART:
        words.insert(0, _acted(entry))
    return Fate(item_id=item.id, text=" ".join(words), url=item_url(queue_name, item.id))


def _now_words(item: Item) -> str:
    """Return the present state of an item in words."""
    if item.state == "leased":
        worker = write.shorten(write.visible(item.worker), 80) or _("an unnamed worker")
        return _("It is leased by %(worker)s now.") % {"worker": worker}
    if item.state == "delayed":
        return _("It is due %(at)s now.") % {"at": write.clock(item.due_at)}
    if item.state == "dead":
        return _("It is dead now.")
    if item.priority is None:
        return _("It is ready now.")
    return _("It is ready with priority %(priority)s now.") % {"priority": write.priority_short(item.priority)}


def _acted(entry: AuditEntry) -> str:
    values = {"by": _by(entry), "verb": verb_words(entry.verb), "at": write.clock(entry.at)}
    return _("%(by)s %(verb)s it at %(at)s.") % values


def _by(entry: AuditEntry) -> str:
    return write.shorten(write.visible(entry.actor), 80) or _("an unknown user")
