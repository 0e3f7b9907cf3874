"""The star of a queue's page."""

from typing import Any

from django import template
from django.template.context import RequestContext

from pqadmin.dashboard.overview import favorites

register = template.Library()


@register.inclusion_tag("dashboard/_star.html", takes_context=True)
def star(context: RequestContext, queue_id: int) -> dict[str, Any]:
    """Show whether the queue is a favorite of the reader's, as a button that changes it."""
    request = context.request
    return {
        "request": request,
        "csrf_token": context.get("csrf_token"),
        "queue_id": queue_id,
        "starred": queue_id in favorites.of(request.user),
    }
