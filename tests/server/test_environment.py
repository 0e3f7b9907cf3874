"""Settings: every one is declared, documented and checked."""

import re
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.db import connection

from pqadmin.conf import environment
from pqadmin.conf.environment import SETTINGS, BadSetting

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+?) \|", DOCUMENT, re.MULTILINE))


def test_documented_settings_are_the_declared_ones() -> None:
    assert list(ROWS) == [setting.name for setting in SETTINGS]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_documented_default_is_the_real_one(setting) -> None:
    assert ROWS[setting.name] == (f"`{setting.default}`" if setting.default else "empty")
    assert re.search(rf"^## .*{setting.name}", DOCUMENT, re.MULTILINE)


def test_nothing_else_reads_the_environment() -> None:
    """A setting read elsewhere in the packages would be undeclared and so undocumented."""
    reading = re.compile(r"\b(os\.environ|getenv)\b")
    allowed = {"settings.py", "cli.py", "asgi.py"}
    readers = [
        str(path.relative_to(ROOT))
        for package in ("pqadmin", "queues")
        for path in (ROOT / package).rglob("*.py")
        if reading.search(path.read_text(encoding="utf-8")) and path.name not in allowed
    ]
    assert set(readers) == {
        "pqadmin/commands/shell_completion.py",  # what the shell asks for; handed to environment.read_store
        "pqadmin/commands/exec_program.py",  # handed on to the program
        "pqadmin/commands/handlers.py",  # DJANGO_SETTINGS_MODULE of the handlers' program
        "pqadmin/commands/management/commands/work.py",  # handed to environment.read_store
        "queues/kv/embedded/store.py",  # PQ_STORE_MAX_BYTES
        "queues/kv/embedded/integrity_check.py",  # handed on to a process
        "queues/workers/heartbeats.py",  # the same
    }
    names = {setting.name for setting in SETTINGS} | {"DJANGO_SETTINGS_MODULE", "_ARGCOMPLETE"}
    for path in [*(ROOT / "pqadmin" / name for name in allowed), *(ROOT / name for name in readers)]:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"environ(?:\.\w+\(|\[)\"([A-Z_]+)\"", text)) <= names


def test_settings_have_defaults() -> None:
    chosen = environment.read({})
    assert chosen.data == Path.cwd() / "var"
    assert chosen.store == f"lmdb:{Path.cwd() / 'var' / 'store'}"
    assert (chosen.host, chosen.port) == ("127.0.0.1", 8000)
    assert chosen.allowed_hosts == ("localhost", "127.0.0.1", "[::1]")
    assert chosen.trusted_proxy == ()
    assert chosen.environment == ""
    assert chosen.database["NAME"] == str(Path.cwd() / "var" / "site.sqlite3")


def test_a_blank_setting_is_its_default() -> None:
    assert environment.read({setting.name: "  " for setting in SETTINGS}) == environment.read({})


def test_settings_are_read_from_the_environment() -> None:
    chosen = environment.read(
        {
            "PQADMIN_DATA": "/srv/pq",
            "PQADMIN_HOST": "::",
            "PQADMIN_PORT": "0",
            "PQADMIN_ALLOWED_HOSTS": "queues.example.org, .example.net",
            "PQADMIN_TRUSTED_PROXY": "10.0.0.0/8, ::1",
            "PQADMIN_ENVIRONMENT": "production",
            "DATABASE_URL": "postgres://me:secret@db/site",
        }
    )
    assert chosen.store == "lmdb:/srv/pq/store"
    assert chosen.port == 0
    assert chosen.allowed_hosts == ("localhost", "127.0.0.1", "[::1]", "queues.example.org", ".example.net")
    assert chosen.trusted_proxy == (ip_network("10.0.0.0/8"), ip_network("::1"))
    assert chosen.database["ENGINE"] == "django.db.backends.postgresql"
    assert chosen.database["CONN_HEALTH_CHECKS"] is True


def test_listening_on_one_address_allows_that_address() -> None:
    assert "192.0.2.7" in environment.read({"PQADMIN_HOST": "192.0.2.7"}).allowed_hosts
    assert "[2001:db8::7]" in environment.read({"PQADMIN_HOST": "2001:db8::7"}).allowed_hosts


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PQADMIN_STORE", "store"),
        ("PQADMIN_STORE", "/var/lib/pq"),
        ("PQ_STORE_MAX_BYTES", "1e9"),
        ("PQ_STORE_MAX_BYTES", "0"),
        ("PQADMIN_DATA", "a\0b"),
        ("PQADMIN_HOST", "127.0.0.1:8000"),
        ("PQADMIN_HOST", "http://localhost"),
        ("PQADMIN_HOST", "a b"),
        ("PQADMIN_PORT", "-1"),
        ("PQADMIN_PORT", "65536"),
        ("PQADMIN_PORT", "8000.0"),
        ("PQADMIN_PORT", "８０００"),
        ("PQADMIN_ALLOWED_HOSTS", "*"),
        ("PQADMIN_ALLOWED_HOSTS", "https://queues.example.org"),
        ("PQADMIN_ALLOWED_HOSTS", "queues.example.org:8000"),
        ("PQADMIN_TRUSTED_PROXY", "proxy"),
        ("PQADMIN_TRUSTED_PROXY", "10.0.0.1/8"),
        ("PQADMIN_ENVIRONMENT", "x" * 41),
        ("PQADMIN_ENVIRONMENT", "a\nb"),
        ("DATABASE_URL", "site.db"),
        ("DATABASE_URL", "nosuchengine://host/name"),
    ],
)
def test_bad_value_is_named(name: str, value: str) -> None:
    with pytest.raises(BadSetting, match=f"^{name}") as refused:
        environment.read({name: value})
    assert "\n" not in str(refused.value)


def test_a_password_in_a_database_url_is_not_repeated() -> None:
    with pytest.raises(BadSetting) as refused:
        environment.read({"DATABASE_URL": "nosuch://me:hunter2@host/name"})
    assert "hunter2" not in str(refused.value)


def test_each_commit_of_sqlite_is_flushed(db: None) -> None:
    """Otherwise a power cut could undo the last ones: a revoked token would be valid again."""
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA synchronous").fetchone() == (2,)
