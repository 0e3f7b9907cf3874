"""The words that a wall's scripts need besides the live view's own, by code."""

from django.utils.translation import gettext as _


def words() -> dict[str, str]:
    """Return every word by its code; the same messages as the first HTML says."""
    return {
        "wall-queues": _("%(n)s queues"),
        "wall-one-queue": _("1 queue"),
        "wall-unread": _("%(n)s not read yet"),
        "wall-more": _("+%(n)s more"),
        "wall-ready": _("%(n)s ready"),
        "wall-next": _("next board in %(left)s"),
        "wall-old": _("Data is %(age)s old"),
        "wall-none": _("No data yet"),
        "wall-still": _("This picture is not live"),
        "wall-why-reconnecting": _("The server does not answer. Trying again."),
        "wall-why-unopened": _(
            "The server answers, but no live connection opens: too many screens are on, or a proxy does not pass "
            "websockets, or changes their host or scheme."
        ),
        "wall-why-silent": _("Nothing was heard from the server."),
        "wall-why-closed": _(
            "This screen may no longer show the board. Its link was revoked, or the board was removed."
        ),
        "wall-why-gone": _("The board was removed, or shows no queue that you may see."),
        "wall-why-not-allowed": _("You may not look at queues any more. An admin can give you a role."),
        "wall-why-signed-out": _("You are signed out. A screen that stays needs a link of its own."),
        "wall-closed": _("Closed"),
    }
