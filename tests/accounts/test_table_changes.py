"""Changes of the site's tables are seen by every process, also after a reading that failed."""

import sqlite3
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, connections

from pqadmin.accounts.table_changes import TableChanges


def test_a_change_that_is_made_while_the_tables_are_locked_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "tables")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE tokens (name)")
    monkeypatch.setitem(connections.settings[DEFAULT_DB_ALIAS], "ENGINE", "django.db.backends.sqlite3")
    monkeypatch.setitem(connections.settings[DEFAULT_DB_ALIAS], "NAME", path)
    changes = TableChanges()
    seen = [changes.number()]
    for _ in range(3):
        other.execute("BEGIN EXCLUSIVE")
        assert changes.number() is None
        other.execute("INSERT INTO tokens VALUES (1)")
        other.execute("COMMIT")
        seen.append(changes.number())
        assert seen[-1] == changes.number()
    assert None not in seen
    assert len(set(seen)) == 4
    other.close()
