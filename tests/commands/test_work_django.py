"""`pqadmin work` and Django: handlers run under their program's settings, or without Django; never under the site's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queues import open_store
from tests.programs import run_to_end

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120

PROJECT = {
    "shop/__init__.py": "",
    "shop/settings.py": """
import os
SECRET_KEY = "the shop's"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
SHOP_NAME = os.environ.get("SHOP_NAME", "corner shop")
LOGGING = {"version": 1}
""",
    "shop/other_settings.py": "from shop.settings import *\nSHOP_NAME = 'the other shop'\n",
    "shop/models.py": """
from django.db import models

class Order(models.Model):
    text = models.TextField()
""",
    "shop/jobs.py": """
from django.conf import settings
from django.contrib.auth.models import User
from queues.workers import Worker
from shop.models import Order

worker = Worker()

@worker.handles("orders")
def order(job):
    made = Order.objects.create(text=job.item.value.decode())
    print(settings.SHOP_NAME, settings.SECRET_KEY, made.pk, [user.username for user in User.objects.all()], flush=True)
""",
    "prepare.py": """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
import django
django.setup()
from django.core.management import call_command
call_command("migrate", run_syncdb=True, verbosity=0)
from django.contrib.auth.models import User
User.objects.create(username="shopkeeper")
""",
    "plain.py": """
import sys
from django.conf import settings
from queues.workers import Worker

worker = Worker()

@worker.handles("orders")
def order(job):
    site = sorted(name for name in sys.modules if name in ("pqadmin.settings", "django.contrib.auth.models"))
    print(job.item.value.decode(), settings.configured, site, flush=True)
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a program, with a store of one item."""
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    with open_store(f"lmdb:{tmp_path / 'data' / 'store'}") as store:
        store.create_queue("orders").push(b"tea", priority=1)
    return tmp_path


def python(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the program's folder, in an environment that names no settings but these."""
    unset = ("DJANGO_SETTINGS_MODULE", "PQADMIN_STORE")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    return run_to_end(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT), "PQADMIN_DATA": str(folder / "data")} | variables,
    )


def work(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return python(folder, "-m", "pqadmin", "work", "orders", "--once", *arguments, **variables)


DONE = "1 done, 0 failed (0 of them dead), 0 stopped, 0 cut off.\n"


@pytest.mark.parametrize("program", [("-m", "pqadmin"), (str(ROOT / "manage.py"),)], ids=["pqadmin", "manage.py"])
def test_handlers_run_under_the_django_of_their_program(folder: Path, program: tuple[str, ...]) -> None:
    assert python(folder, "prepare.py").returncode == 0
    arguments = (*program, "work", "orders", "--once", "--handlers", "shop.jobs")
    worked = python(folder, *arguments, DJANGO_SETTINGS_MODULE="shop.settings", SHOP_NAME="tea & co")
    assert (worked.returncode, worked.stderr) == (0, "")
    assert worked.stdout == f"tea & co the shop's 1 ['shopkeeper']\n{DONE}"
    assert sorted(path.name for path in (folder / "data").iterdir()) == ["store"], "nothing of the site was made"


def test_settings_are_named_by_option_before_the_environment(folder: Path) -> None:
    assert python(folder, "prepare.py").returncode == 0
    settings = ("--settings", "shop.other_settings")
    worked = work(folder, "--handlers", "shop.jobs", *settings, DJANGO_SETTINGS_MODULE="shop.settings")
    assert worked.stdout == f"the other shop the shop's 1 ['shopkeeper']\n{DONE}", worked.stderr


def test_a_program_without_django_needs_none(folder: Path) -> None:
    # What the site could not read is none of the command's business.
    worked = work(folder, "--handlers", "plain", DATABASE_URL="mysql2://its.own", PQADMIN_PORT="high")
    assert (worked.returncode, worked.stderr) == (0, "")
    assert worked.stdout == f"tea False []\n{DONE}"
    assert sorted(path.name for path in (folder / "data").iterdir()) == ["store"]


@pytest.mark.parametrize("settings", ["shop.settings", ""], ids=["with Django", "without"])
def test_a_failure_is_logged_whatever_the_program_says_of_logging(folder: Path, settings: str) -> None:
    (folder / "failing.py").write_text(
        "from queues.workers import Backoff, Worker\n"
        "worker = Worker()\n"
        "@worker.handles('orders', backoff=Backoff(first=3600))\n"
        "def fail(job): raise ValueError\n"
    )
    worked = work(folder, "--handlers", "failing", DJANGO_SETTINGS_MODULE=settings)
    assert worked.stdout == "0 done, 1 failed (0 of them dead), 0 stopped, 0 cut off.\n"
    (line,) = worked.stderr.splitlines()
    assert "WARNING queues.workers: orders: item" in line
    assert "ValueError at" in line


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        (
            ("--handlers", "shop.jobs", "--settings", "no.such"),
            {},
            "Django cannot be set up by no.such: ModuleNotFound",
        ),
        (("--handlers", "shop.jobs"), {}, "shop.jobs cannot be imported: ImproperlyConfigured"),
        (("--handlers", "plain"), {"PQADMIN_STORE": "nowhere"}, "PQADMIN_STORE='nowhere': a store URL begins with"),
        (("--handlers", "plain"), {"PQADMIN_DATA": "/nowhere"}, "There is no store in /nowhere/store"),
    ],
)
def test_what_cannot_be_set_up_is_one_line(
    folder: Path, arguments: tuple[str, ...], variables: dict[str, str], message: str
) -> None:
    worked = work(folder, *arguments, **variables)
    assert worked.returncode != 0
    assert message in worked.stderr
    assert "Traceback" not in worked.stderr
    assert worked.stdout == ""


def test_help_needs_no_settings(folder: Path) -> None:
    helped = python(folder, "-m", "pqadmin", "work", "--help", PQADMIN_PORT="high")
    assert helped.returncode == 0
    assert "--handlers" in helped.stdout
