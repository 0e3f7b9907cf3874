"""Is the process alive, and can it serve? For machines, without login."""

import logging

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from pqadmin.server.store import get_store
from queues.errors import QueueError, StoreError

log = logging.getLogger(__name__)


@login_not_required
@require_safe
def livez(request: HttpRequest) -> JsonResponse:
    """Answer 200 while the process serves at all."""
    return JsonResponse({"status": "ok"})


@login_not_required
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if the store and the database can be read, else 503 and which can not."""
    checks = {"store": _store(), "database": _database()}
    ready = all(checks.values())
    return JsonResponse(
        {
            "status": "ok" if ready else "unavailable",
            "checks": {name: "ok" if ok else "unavailable" for name, ok in checks.items()},
        },
        status=200 if ready else 503,
        headers={} if ready else {"Retry-After": "5"},
    )


def _store() -> bool:
    try:
        get_store().snapshot(())  # decodes no queue: one that can not be read does not take the site away
    except (StoreError, QueueError) as error:
        log.warning("not ready: the store: %s", error)
        return False
    return True


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        log.warning("not ready: the database: %s", type(error).__name__)
        return False
    return True
