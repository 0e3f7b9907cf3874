"""What templates of acts on items say: an item's state in a few words."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext as _

from pqadmin.display import format as write
from pqadmin.display.words import item_state_word
from queues import Item

register = template.Library()

_WIDTH = 40


@register.filter
def state_of(item: Item) -> str:
    """Say in which state an item is, and what matters about that."""
    if item.state == "delayed" and item.due_at is not None:
        return _("due %(at)s") % {"at": write.clock(item.due_at)}
    if item.state == "leased":
        worker = write.shorten(write.visible(item.worker), _WIDTH) or _("somebody")
        return _("leased by %(worker)s") % {"worker": worker}
    if item.state == "dead" and item.reason:
        return _("dead: %(reason)s") % {"reason": write.shorten(write.visible(item.reason), _WIDTH)}
    return item_state_word(item.state)
