"""How-to pages: their Python and their scripts run as they are written."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from queues import open_store
from tests.programs import run_to_end

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "how-to"
#: These need a second process or another database: they have tests of their own, below or in tests/remote.
SPECIAL = {"gunicorn-and-forks", "outbox-beside-postgresql", "remote-store"}


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of code of a page."""
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


PAGES = sorted({path.stem for path in FOLDER.glob("*.md") if blocks(path.stem, "python")} - SPECIAL)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": page}
    exec("\n".join(blocks(page, "python")), names)
    for name, function in list(names.items()):
        if name.startswith("test_"):
            function()


class Cursor:
    """A cursor of SQLite that takes the SQL of PostgreSQL."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.fetchall = cursor.fetchall

    def execute(self, sql: str, values: tuple[object, ...]) -> None:
        self._cursor.execute(sql.replace("%s", "?").replace(" FOR UPDATE SKIP LOCKED", ""), values)


class Connection:
    """A connection that dies instead of its n-th commit."""

    def __init__(self, database: sqlite3.Connection, deaths: int) -> None:
        self._database, self._deaths = database, deaths

    def cursor(self) -> Cursor:
        return Cursor(self._database.cursor())

    def commit(self) -> None:
        if self._deaths:
            self._deaths -= 1
            self._database.rollback()
            raise ConnectionError
        self._database.commit()


def test_an_outbox_is_carried_once_although_its_relay_dies() -> None:
    names: dict[str, Any] = {}
    exec("\n".join(blocks("outbox-beside-postgresql", "python")), names)
    database = sqlite3.connect(":memory:")
    database.execute(blocks("outbox-beside-postgresql", "sql")[0].replace("bigserial", "integer"))
    insert = blocks("outbox-beside-postgresql", "sql")[1].replace("%s", "?")
    database.executemany(insert, [(b"a", 1), (b"b", 2)])
    database.commit()
    connection = Connection(database, deaths=1)
    with open_store("memory:") as store:
        jobs = store.create_queue("jobs")
        with pytest.raises(ConnectionError):
            names["relay"](connection, store, "jobs")
        assert names["relay"](connection, store, "jobs") == 2
        assert names["relay"](connection, store, "jobs") == 0
        assert [item.value for item in jobs.pop_many(10)] == [b"a", b"b"]
        assert store.space("outbox").get_range() == []


def test_a_store_that_is_opened_at_its_first_use_works_in_forked_processes(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("\n".join(blocks("gunicorn-and-forks", "python")))
    program = """
import os, shop
for child in range(2):
    if not (pid := os.fork()):
        shop.app({}, lambda status, headers: None)
        shop.store().close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
assert shop.mail().depth() == 2
"""
    environment = {**os.environ, "PQADMIN_STORE": f"lmdb:{tmp_path}/store"}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, timeout=120)


def test_a_backup_is_checked_copied_and_restored(tmp_path: Path) -> None:
    backup, restore = blocks("off-site-backup", "sh")
    (tmp_path / "backup").mkdir()
    (tmp_path / "remote").mkdir()
    with open_store(f"lmdb:{tmp_path}/store") as store:
        store.create_queue("jobs").push(b"value", priority=1)

    def sh(script: str, **variables: str) -> None:
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PQADMIN_STORE": f"lmdb:{tmp_path}/store",
            **variables,
        }
        done = run_to_end(["bash", "-e", "-c", script], env=environment)
        assert done.returncode == 0, done.stdout + done.stderr

    remote = tmp_path / "remote"
    sh(backup, BACKUP_FOLDER=f"{tmp_path}/backup", BACKUP_COPY="cp --recursive", BACKUP_REMOTE=str(remote))
    (copy,) = remote.iterdir()
    sh(restore, BACKUP=str(copy), RESTORED=f"lmdb:{tmp_path}/restored")
    with open_store(f"lmdb:{tmp_path}/restored") as store:
        item = store.queue("jobs").pop_min()
        assert item.value == b"value"
