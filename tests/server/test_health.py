"""Health while something hangs: asked of a real server, and of the checks with a disk that is full."""

import http.cookiejar
import json
import shutil
import sqlite3
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pqadmin.server import health
from pqadmin.store import close_store
from tests.health import ask, elsewhere
from tests.server.conftest import PATIENCE, Site, log_in, send_login


def test_a_locked_database_is_answered_with_503_and_health_at_once(serve: Callable[..., Site], tmp_path: Path) -> None:
    """Four writes that waited held every thread that runs views, for 20 seconds."""
    site = serve(PQADMIN_VIEW_THREADS="2")
    log_in(site)
    answers: list[tuple[int, str | None]] = []
    with closing(sqlite3.connect(tmp_path / "site.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writers = [threading.Thread(target=lambda: answers.append(_log_in_again(site))) for _ in range(4)]
        for writer in writers:
            writer.start()
        began, ready = time.monotonic(), []
        while any(writer.is_alive() for writer in writers):
            asked = time.monotonic()
            assert site.get("/livez")[0] == 200
            ready.append(_status(site, "/readyz"))
            assert time.monotonic() - asked < 10
            assert time.monotonic() - began < PATIENCE
        other.execute("ROLLBACK")
    assert 200 in ready, "what is locked can still be read"
    assert not [line for line in site.complained if "not ready: the database: " in line]
    assert answers == [(503, "5")] * 4
    assert _log_in_again(site)[0] == 422, "answered again: a wrong password"


def _status(site: Site, path: str) -> int:
    """Return the status of an answer; a busy machine may be told not to be ready, as its checks take too long."""
    try:
        return site.get(path)[0]
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def _log_in_again(site: Site) -> tuple[int, str | None]:
    """Send a wrong password, which is written down; return status and Retry-After."""
    try:
        with send_login(site, "stranger", "wrong", http.cookiejar.CookieJar()) as answer:
            return answer.status, None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Retry-After"]


def test_health_is_answered_under_any_host_name(site: Site) -> None:
    """Probes ask by the address of a pod, which no setting names."""
    for path in ("/livez", "/readyz"):
        request = urllib.request.Request(site.address + path, headers={"Host": "10.1.2.3"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert answer.status == 200
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Cache-Control"] == "no-store, private"


def test_a_full_disk_is_not_ready(serve: Callable[..., Site], tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    site = serve(PQADMIN_MIN_FREE_BYTES=str(free * 10))
    assert site.get("/livez")[0] == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        site.get("/readyz")
    with refused.value as answer:
        assert answer.code == 503
        assert json.load(answer)["checks"] == {"store": "ok", "database": "ok", "disk": "unavailable"}
    site.wait_for("bytes free")


async def test_the_stores_disk_counts_too_and_zero_is_no_check(db: None, settings, tmp_path: Path, monkeypatch) -> None:
    real = shutil.disk_usage

    def usage(path: Path) -> object:
        found = real(path)
        return found._replace(free=10) if tmp_path in (Path(path), *Path(path).parents) else found

    monkeypatch.setattr(shutil, "disk_usage", usage)
    settings.PQADMIN_STORE = f"lmdb:{tmp_path / 'store'}"
    settings.PQADMIN_MIN_FREE_BYTES = 1_000
    application = health.Health(elsewhere)
    try:
        assert (await ask(application)).json["checks"]["disk"] == "unavailable"
        settings.PQADMIN_MIN_FREE_BYTES = 0
        assert (await ask(application)).json["checks"]["disk"] == "ok"
    finally:
        close_store()


async def test_a_check_that_hangs_counts_as_failed_and_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(health, "WITHIN", 0.2)
    monkeypatch.setattr(health, "_store", lambda: go.wait(PATIENCE))
    monkeypatch.setattr(health, "_database", lambda: True)

    application = health.Health(elsewhere)
    for _ in range(3):  # and no thread more for each
        answer = await ask(application)
        assert (answer.status, answer.json["checks"]) == (503, {"store": "unavailable", "database": "ok", "disk": "ok"})
    assert (await ask(application, "/livez")).json == {"status": "ok"}
    go.set()
    while (await ask(application)).status != 200:
        pass
