"""Codes in words: states, outlooks, problems, verbs. Codes are the monitor's and the audit's; words are translated."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from pqadmin.display import format as write
from pqadmin.display.errors import said
from queues import TrashEntry
from queues.admin import UNCLAIMED_BY


def item_state_word(state: str) -> str:
    """Return the word for the state of an item."""
    return str(_ITEM_STATES.get(state, state))


_ITEM_STATES = {
    "ready": pgettext_lazy("item", "ready"),
    "delayed": pgettext_lazy("item", "delayed"),
    "leased": pgettext_lazy("item", "leased"),
    "dead": pgettext_lazy("item", "dead"),
    "acknowledged": pgettext_lazy("item", "acknowledged"),
    "popped": pgettext_lazy("item", "popped"),
}


def view_word(view: str) -> str:
    """Return the name of a way to show a value; formats keep their own names."""
    return str({"text": pgettext("view", "text"), "packed": pgettext("view", "packed")}.get(view, view))


def done_words(verb: str) -> str:
    """Return what a queue's traffic counts by this name."""
    return verb_words("put_back") if verb == "restore" else str(TRASH_ACTS.get(verb, verb_words(verb)))


def verb_words(verb: str) -> str:
    """Return an audited verb in words; one of a later release as it is."""
    return str(VERBS.get(verb, verb))


VERBS = {
    "create": gettext_lazy("created the queue"),
    "push": gettext_lazy("pushed"),
    "enqueue": gettext_lazy("enqueued"),
    "pop_min": gettext_lazy("popped min"),
    "pop_max": gettext_lazy("popped max"),
    "dequeue": gettext_lazy("dequeued"),
    "put_back": gettext_lazy("put back"),
    "pause": gettext_lazy("paused"),
    "resume": gettext_lazy("resumed"),
    "rename": gettext_lazy("renamed"),
    "delete": gettext_lazy("deleted"),
    "purge": gettext_lazy("purged"),
    "attach": gettext_lazy("attached the queue"),
    "detach": gettext_lazy("detached the queue"),
    "delete_queue": gettext_lazy("deleted the queue"),
    "restore_queue": gettext_lazy("restored the queue"),
    "configure": gettext_lazy("changed settings"),
    "reveal": gettext_lazy("revealed a value"),
    "move": gettext_lazy("moved"),
    "reprioritize": gettext_lazy("re-prioritized"),
    "edit": gettext_lazy("edited"),
    "undo": gettext_lazy("undid"),
    "promote": gettext_lazy("promoted"),
    "reschedule": gettext_lazy("rescheduled"),
    "delay": pgettext_lazy("verb", "delayed"),
    "retry": gettext_lazy("retried"),
    "release": gettext_lazy("released"),
    "lease": pgettext_lazy("verb", "leased"),
    "ack": gettext_lazy("acknowledged"),
    "extend": gettext_lazy("extended the lease"),
    "import": gettext_lazy("imported"),
    "keep_template": gettext_lazy("kept a push template"),
    "forget_template": gettext_lazy("deleted a push template"),
    "begin_job": gettext_lazy("began a job"),
    "cancel_job": gettext_lazy("canceled a job"),
    "resume_job": gettext_lazy("let a job go on"),
    "undo_job": gettext_lazy("began to undo a job"),
    "create_person": gettext_lazy("created a person"),
    "change_role": gettext_lazy("changed a role"),
    "add_grant": gettext_lazy("granted queues"),
    "remove_grant": gettext_lazy("took a grant away"),
    "deactivate_person": gettext_lazy("deactivated a person"),
    "reactivate_person": gettext_lazy("reactivated a person"),
    "reset_password": gettext_lazy("made a new password"),
    "change_person": gettext_lazy("changed a person"),
    "delete_person": gettext_lazy("deleted a person"),
    "create_token": gettext_lazy("created a token"),
    "revoke_token": gettext_lazy("revoked a token"),
    "create_group": gettext_lazy("created a group of people"),
    "change_group": gettext_lazy("changed a group of people"),
    "delete_group": gettext_lazy("deleted a group of people"),
    "arm": gettext_lazy("armed"),
    "disarm": gettext_lazy("disarmed"),
    "set_clock": gettext_lazy("set the store's clock"),
    "make_board": gettext_lazy("made a board"),
    "change_board": gettext_lazy("changed a board"),
    "remove_board": gettext_lazy("removed a board"),
    "mint_link": gettext_lazy("made a link for a screen"),
    "revoke_link": gettext_lazy("revoked a link"),
    "set_targets": gettext_lazy("set targets"),
    "remove_targets": gettext_lazy("removed targets"),
}


def trash_words(entry: TrashEntry) -> str:
    """Say what was done to what an entry of the trash holds."""
    if entry.what == "queue":
        return str(_("deleted queue"))
    if entry.damage:
        return str(_("cannot be read"))
    return str(TRASH_ACTS.get(entry.act, entry.act or _("taken")))


def damage_words(damage: str) -> str:
    """Say why a record of the store cannot be read, and that it is kept."""
    return _("%(why)s It stays as it is.") % {"why": said(damage)}


#: What was done, by the act of a trash entry.
TRASH_ACTS = {
    "pop": gettext_lazy("popped"),
    **{act: VERBS[act] for act in ("push", "delete", "move", "reprioritize", "edit", "promote", "reschedule")},
    **{act: VERBS[act] for act in ("delay", "retry", "release", "ack", "purge")},
    "delete_queue": gettext_lazy("deleted queue"),
}


def detail_words(name: str) -> str:
    """Return the name of a detail of an audited act in words; one of a later release as it is."""
    return str(_DETAILS.get(name, write.visible(name.replace("_", " "))))


_DETAILS = {
    "act": pgettext_lazy("detail", "act"),
    "board": pgettext_lazy("detail", "board"),
    "dead": pgettext_lazy("detail", "dead items"),
    "delay": pgettext_lazy("detail", "delay"),
    "density": pgettext_lazy("detail", "read from"),
    "depth": pgettext_lazy("detail", "depth"),
    "due": pgettext_lazy("detail", "due"),
    "expires": pgettext_lazy("detail", "expires"),
    "expires_at": pgettext_lazy("detail", "valid until"),
    "owner": pgettext_lazy("detail", "owner"),
    "rate": pgettext_lazy("detail", "requests a second"),
    "token": pgettext_lazy("detail", "token"),
    "verbs": pgettext_lazy("detail", "may"),
    "globs": pgettext_lazy("detail", "queues"),
    "group": pgettext_lazy("detail", "group of people"),
    "growing": pgettext_lazy("detail", "seconds of growth"),
    "groups": pgettext_lazy("detail", "groups of people"),
    "is_active": pgettext_lazy("detail", "may sign in"),
    "is_staff": pgettext_lazy("detail", "staff"),
    "is_superuser": pgettext_lazy("detail", "superuser"),
    "username": pgettext_lazy("detail", "name"),
    "grants": pgettext_lazy("detail", "grants"),
    "import": pgettext_lazy("detail", "file"),
    "job": pgettext_lazy("detail", "job"),
    "kept_seconds": pgettext_lazy("detail", "seconds in the trash"),
    "kind": pgettext_lazy("detail", "kind"),
    "label": pgettext_lazy("detail", "screen"),
    "language": pgettext_lazy("detail", "language"),
    "last_line": pgettext_lazy("detail", "up to line"),
    "link": pgettext_lazy("detail", "link"),
    "links": pgettext_lazy("detail", "links"),
    "minutes": pgettext_lazy("detail", "minutes"),
    "name": pgettext_lazy("detail", "name"),
    "no_consumer": pgettext_lazy("detail", "seconds without a consumer"),
    "of": pgettext_lazy("detail", "undoes the job"),
    "oldest": pgettext_lazy("detail", "oldest age in seconds"),
    "order": pgettext_lazy("detail", "order"),
    "pattern": pgettext_lazy("detail", "pattern"),
    "paused_by": pgettext_lazy("detail", "paused by"),
    "person": pgettext_lazy("detail", "person"),
    "prefix": pgettext_lazy("detail", "prefix"),
    "priority": pgettext_lazy("detail", "priority"),
    "priority_type": pgettext_lazy("detail", "type of priorities"),
    "push_order": pgettext_lazy("detail", "push order"),
    "queues": pgettext_lazy("detail", "queues"),
    "reason": pgettext_lazy("detail", "reason"),
    "role": pgettext_lazy("detail", "role"),
    "rotation": pgettext_lazy("detail", "takes turns with"),
    "seconds": pgettext_lazy("detail", "seconds"),
    "size": pgettext_lazy("detail", "size"),
    "skipped": pgettext_lazy("detail", "left alone"),
    "state": pgettext_lazy("detail", "state"),
    "template": pgettext_lazy("detail", "template"),
    "theme": pgettext_lazy("detail", "theme"),
    "to": pgettext_lazy("detail", "to"),
    "total": pgettext_lazy("detail", "items that it may meet"),
    "until": pgettext_lazy("detail", "until"),
    "wait": pgettext_lazy("detail", "seconds of waits"),
    "worker": pgettext_lazy("detail", "worker"),
}


def detail_value(name: str, value: str) -> str:
    """Return what a detail says in words, where it is a word of ours; anything else as it is."""
    return str(_DETAIL_VALUES.get((name, value), TRASH_ACTS.get(value, value) if name == "act" else value))


#: By the name of the detail and what is written there.
_DETAIL_VALUES = {
    ("act", "delete"): gettext_lazy("Delete"),
    ("act", "move"): gettext_lazy("Move"),
    ("act", "promote"): gettext_lazy("Promote now"),
    ("act", "push"): gettext_lazy("Push"),
    ("act", "release"): gettext_lazy("Take back"),
    ("act", "reprioritize"): gettext_lazy("Re-prioritize"),
    ("act", "retry"): gettext_lazy("Retry"),
    ("act", "undo"): gettext_lazy("Undo"),
    ("density", "far"): gettext_lazy("Far"),
    ("density", "middle"): gettext_lazy("Middle"),
    ("density", "near"): gettext_lazy("Near"),
    ("order", "depth"): gettext_lazy("Deepest first"),
    ("order", "name"): gettext_lazy("By name"),
    ("order", "worst"): gettext_lazy("Worst first"),
    ("role", "none"): gettext_lazy("no role"),
    ("role", "viewer"): gettext_lazy("viewer"),
    ("role", "operator"): gettext_lazy("operator"),
    ("role", "admin"): gettext_lazy("admin"),
    ("theme", "auto"): gettext_lazy("As the screen's system"),
    ("theme", "dark"): gettext_lazy("Dark"),
    ("theme", "light"): gettext_lazy("Light"),
}


#: The states of a bulk job.
JOB_STATUS = {
    "running": pgettext_lazy("job", "running"),
    "done": pgettext_lazy("job", "done"),
    "canceled": pgettext_lazy("job", "canceled"),
    "failed": pgettext_lazy("job", "failed"),
}


def actor_words(name: str) -> str:
    """Return the name of an actor, or the words for a process that died."""
    return _("a process that died") if name == UNCLAIMED_BY else write.visible(name)


def setting_words(name: str) -> str:
    """Return the name of a queue's setting in words."""
    return str(_SETTINGS.get(name, name))


_SETTINGS = {
    "note": gettext_lazy("note"),
    "runbook": gettext_lazy("runbook link"),
    "redact": gettext_lazy("redaction rules"),
    "preview": gettext_lazy("preview fields"),
    "max_attempts": gettext_lazy("attempts"),
    "closed": gettext_lazy("closed for pushes"),
    "max_depth": gettext_lazy("limit of items"),
    "max_value": gettext_lazy("limit of size"),
    "keep_finished": gettext_lazy("time to keep finished items"),
    "target_depth": gettext_lazy("target of ready items"),
    "target_oldest": gettext_lazy("target of the oldest age"),
    "target_wait": gettext_lazy("target of waits"),
    "target_dead": gettext_lazy("target of dead items"),
    "target_no_consumer": gettext_lazy("target of time without a consumer"),
    "target_growing": gettext_lazy("target of growth"),
}
