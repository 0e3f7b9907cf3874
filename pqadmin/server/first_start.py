"""What has to be there before the site can serve. Every start makes sure of it, the first one makes it."""

import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.db.migrations.executor import MigrationExecutor

from pqadmin.accounts.passwords import new_password
from pqadmin.accounts.roles import Role, grant
from pqadmin.commands.store_command import is_missing
from pqadmin.conf import secret_key
from pqadmin.server import assets, file_permissions
from pqadmin.store import close_store, get_store
from queues.errors import NewerFormat, OlderFormat, QueueError, StoreError

log = logging.getLogger(__name__)

ADMIN = "admin"
#: Bytes that a start takes at least on the disk of the tables.
_NEEDED = 1_000_000
#: The message where the password of the first admin cannot be shown.
NOT_MADE = "No admin was created: start again where the password can be shown."


class CannotStart(Exception):
    """Something that the site needs cannot be made. The message says what and why, on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAdmin:
    """The admin that was just made; the password is kept nowhere else."""

    name: str
    password: str


def prepare(
    *, show: Callable[[FirstAdmin], object] = lambda admin: None, for_command: bool = False
) -> FirstAdmin | None:
    """Make data folder, secret key, tables and static files where missing; raises CannotStart.

    Tables that are there are not migrated while the store is of another release. A command migrates them only if it
    could read the store, and closes it: a missing store's path counts as mistyped. A site migrates them also while its
    store is missing or away: it has to start then, and nothing else would end the wait.

    Returns the first admin if this start made one, and shows it before it is made for good: an error of `show` leaves
    none, as the password is kept nowhere. Starts at the same time wait for each other.
    """
    data: Path = settings.PQADMIN_DATA
    try:
        file_permissions.protect(data)
        with _alone(data / file_permissions.MARK):
            settings.SECRET_KEY = secret_key.ensure(data)
            _migrate(for_command)
            assets.prepare()
            return _first_admin(show)
    except OSError as error:
        cause = f"{error.filename}: " if error.filename and Path(error.filename) != data else ""
        raise CannotStart(f"the data folder {data} cannot be used: {cause}{error.strerror or error}") from error
    except DatabaseError as error:
        name, why = settings.DATABASES[DEFAULT_DB_ALIAS]["NAME"], str(error).strip().splitlines()[0]
        if connections[DEFAULT_DB_ALIAS].vendor == "sqlite" and _is_full(Path(name).parent):
            why = f"the disk is full ({why})"
        raise CannotStart(f"the site's tables cannot be used: {name}: {why}") from error


def _is_full(folder: Path) -> bool:
    """Return whether the disk of a folder is full, which SQLite tells as an I/O error, too."""
    try:
        return shutil.disk_usage(folder).free < _NEEDED
    except OSError:
        return False


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _migrate(for_command: bool) -> None:
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        if executor.loader.applied_migrations:
            _look_at_store(for_command)
        call_command("migrate", interactive=False, verbosity=0)


def _look_at_store(for_command: bool) -> None:
    """Raise CannotStart for a store of another release: the site of that release needs the tables as they are."""
    url = settings.PQADMIN_STORE
    unseen = ""
    if is_missing(url):
        unseen = f"there is no store in {url}. PQADMIN_STORE names another; pqadmin serve makes this one"
    else:
        try:
            get_store()
        except (NewerFormat, OlderFormat) as error:
            raise CannotStart(str(error)) from None
        except (StoreError, QueueError) as error:
            unseen = str(error)
        finally:
            if for_command:
                close_store()
    if unseen and for_command:
        raise CannotStart(f"the site's tables have to be migrated, for which a command reads the store first: {unseen}")


def _first_admin(show: Callable[[FirstAdmin], object]) -> FirstAdmin | None:
    if User.objects.exists():
        return None
    admin = FirstAdmin(name=ADMIN, password=new_password())
    with transaction.atomic():
        grant(User.objects.create_user(admin.name, password=admin.password), Role.ADMIN)
        show(admin)
    return admin
