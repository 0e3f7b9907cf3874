"""What the first start makes, in the process itself."""

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from pqadmin.accounts.passwords import new_password
from pqadmin.accounts.roles import Role, role_of
from pqadmin.conf import secret_key
from pqadmin.server import first_start
from pqadmin.server.first_start import CannotStart, prepare
from pqadmin.store import close_store, opened_store
from queues import open_store
from queues.errors import StoreUnreachable

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def data(settings, tmp_path: Path) -> Path:
    """A data folder that is not there yet; static files are not what these tests are about."""
    settings.PQADMIN_DATA = tmp_path / "var"
    settings.STATIC_ROOT = tmp_path / "var" / "static"
    settings.STATICFILES_DIRS = settings.STATICFILES_FINDERS = []
    settings.SECRET_KEY = "x"
    return tmp_path / "var"


def test_it_makes_one_admin_and_never_another(data: Path, settings) -> None:
    admin = prepare()
    assert admin is not None
    user = User.objects.get()
    assert (user.username, user.is_superuser, role_of(user)) == ("admin", True, Role.ADMIN)
    assert user.check_password(admin.password)
    assert settings.SECRET_KEY == (data / "secret_key").read_text().strip() != "x"
    assert prepare() is None
    assert User.objects.count() == 1


def test_no_admin_where_there_are_people(data: Path) -> None:
    User.objects.create(username="ann")
    assert prepare() is None
    assert User.objects.count() == 1


@pytest.fixture
def migrated(monkeypatch: pytest.MonkeyPatch, settings, tmp_path: Path) -> Iterator[list[str]]:
    """Have a migration pending, and return the commands that were called to migrate."""
    close_store()
    settings.PQADMIN_STORE = f"lmdb:{tmp_path / 'store'}"
    called: list[str] = []
    monkeypatch.setattr(first_start.MigrationExecutor, "migration_plan", lambda self, targets: targets)
    monkeypatch.setattr(first_start, "call_command", lambda name, **_: called.append(name))
    yield called
    close_store()


def test_a_command_closes_the_store_that_it_looked_at_before_it_migrates(migrated: list[str], settings) -> None:
    open_store(settings.PQADMIN_STORE).close()
    prepare(for_command=True)
    assert migrated == ["migrate"]
    assert opened_store() is None


def test_a_command_makes_no_store_and_migrates_nothing_without_one(migrated: list[str], tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=f"there is no store in lmdb:{tmp_path / 'store'}.*PQADMIN_STORE"):
        prepare(for_command=True)
    assert not (tmp_path / "store").exists()
    assert migrated == []


def test_a_site_migrates_before_it_makes_its_store(migrated: list[str], tmp_path: Path) -> None:
    prepare()
    assert not (tmp_path / "store").exists()
    assert migrated == ["migrate"]


def test_while_the_store_is_away_a_site_migrates_and_a_command_does_not(
    migrated: list[str], settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise StoreUnreachable("The cluster does not answer.")

    open_store(settings.PQADMIN_STORE).close()
    monkeypatch.setattr(first_start, "get_store", away)
    with pytest.raises(CannotStart, match="The cluster does not answer"):
        prepare(for_command=True)
    assert migrated == []
    prepare()
    assert migrated == ["migrate"]


@pytest.mark.parametrize("name", ["secret_key", ".starting"])
def test_the_file_that_cannot_be_used_is_named(data: Path, name: str) -> None:
    (data / name).mkdir(parents=True)
    with pytest.raises(CannotStart, match=f"{re.escape(str(data / name))}: Is a directory"):
        prepare()


@pytest.mark.parametrize(("free", "why"), [(4_096, "the disk is full (disk I/O error)"), (10**9, ": disk I/O error")])
def test_a_full_disk_is_told_as_one(monkeypatch: pytest.MonkeyPatch, free: int, why: str) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    with connection.execute_wrapper(fail), pytest.raises(CannotStart, match=re.escape(why)):
        prepare()


def test_many_mint_one_secret_key(tmp_path: Path) -> None:
    together = threading.Barrier(8, timeout=30)
    keys: list[str] = []

    def new_id() -> None:
        together.wait()
        keys.append(secret_key.ensure(tmp_path))

    threads = [threading.Thread(target=new_id) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 1
    assert len(keys) == 8
    assert len(keys[0]) >= 50
    assert secret_key.read(tmp_path) == keys[0]


def test_without_a_kept_key_each_process_has_its_own(tmp_path: Path) -> None:
    assert secret_key.read(tmp_path) != secret_key.read(tmp_path)


def test_passwords_are_long_and_legible() -> None:
    made = {new_password() for _ in range(100)}
    assert len(made) == 100
    assert all(len(password) == 23 and not set(password) & set("0O1lI") for password in made)
