"""Detection of changes of the site's tables, without asking for a row."""

import sqlite3
import threading

from django.db import DEFAULT_DB_ALIAS, connections


class TableChanges:
    """The number of changes of the tables that SQLite counts, of all processes. Thread-safe.

    A reading takes microseconds and never waits for a writer, so an event loop may do it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name = ""
        #: Connections that were opened: each counts changes from the same number on.
        self._opened_so_far = 0
        self._connection: sqlite3.Connection | None = None

    def number(self) -> tuple[int, int] | None:
        """Return numbers that are other ones after each commit; None: another database, or no answer."""
        # Without Django's connection: each request of an event loop would make one of its own.
        database = connections.settings[DEFAULT_DB_ALIAS]
        if not database["ENGINE"].endswith("sqlite3"):
            return None
        with self._lock:
            try:
                connection = self._opened(str(database["NAME"]))
                return self._opened_so_far, int(connection.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error:
                self._close()
                return None

    def _opened(self, name: str) -> sqlite3.Connection:
        if self._connection is None or name != self._name:
            self._close()
            self._name = name
            self._opened_so_far += 1
            # Never in a transaction, so that each reading sees what is committed by now.
            self._connection = sqlite3.connect(
                name, uri=name.startswith("file:"), timeout=0, isolation_level=None, check_same_thread=False
            )
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
