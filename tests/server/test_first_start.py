"""What the first start makes, in the process itself."""

import re
import threading
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from pqadmin.accounts.passwords import new_password
from pqadmin.accounts.roles import Role, role_of
from pqadmin.conf import secret_key
from pqadmin.server.first_start import CannotStart, prepare

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


@pytest.mark.parametrize("name", ["secret_key", ".starting"])
def test_the_file_that_cannot_be_used_is_named(data: Path, name: str) -> None:
    (data / name).mkdir(parents=True)
    with pytest.raises(CannotStart, match=f"{re.escape(str(data / name))}: Is a directory"):
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
