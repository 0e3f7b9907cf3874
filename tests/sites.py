"""What the suites of the site share: a fresh store of the site's own, and cheap passwords."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.management import create_contenttypes
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models.signals import post_migrate

from pqadmin.live import monitor as monitors
from pqadmin.store import close_store, get_store
from queues import Store


@pytest.fixture(autouse=True)
def cheap_passwords(settings: Any) -> None:
    """Hash quickly: argon2's cost is its point, and not what these tests are about."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@contextmanager
def site_store(url: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Open the site's store at a URL; its monitor has seen nothing yet.

    Tests change the store behind the site's back: each page reads it anew, and all of it, on a busy machine too.
    """
    close_store()
    settings.PQADMIN_STORE = url
    monkeypatch.setattr(monitors, "_monitor", None)
    monkeypatch.setattr(monitors, "PAGE_PAUSE", 0.0)
    monkeypatch.setattr(monitors, "FIRST_PAGE", 120.0)
    yield get_store()
    close_store()


def copy_permissions() -> None:
    """Put back the permissions of now, and the types of contents, whenever the tables were emptied."""
    kept = [(model, list(model.objects.all())) for model in (ContentType, Permission)]
    post_migrate.disconnect(create_contenttypes)
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")

    def put_back(using: str, **more: Any) -> None:
        for model, rows in kept:
            model.objects.using(using).bulk_create(rows, ignore_conflicts=True)

    post_migrate.connect(put_back, sender=apps.get_app_config("auth"), weak=False)


@contextmanager
def failing_commits(table: str, act: str = "UPDATE") -> Iterator[None]:
    """Let each commit of the site's tables fail that updates or deletes a row of a table: the end alone sees it."""
    with connection.cursor() as cursor:
        for statement in (
            "CREATE TABLE bad_row (id integer REFERENCES auth_user (id) DEFERRABLE INITIALLY DEFERRED)",
            f"CREATE TRIGGER break_it AFTER {act} ON {table} BEGIN INSERT INTO bad_row VALUES (-1); END",
        ):
            cursor.execute(statement)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER break_it")
            cursor.execute("DROP TABLE bad_row")
