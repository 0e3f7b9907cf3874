"""`serve` from outside: first start, refusals with a clear message, and draining."""

import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from queues.catalog.store_record import StoreRecord
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from tests.damaged import make_store
from tests.forks import MANAGE, run_forked_text
from tests.prepared import prepare
from tests.server.conftest import PATIENCE, log_in

#: The record of a store of release 0.1.
OF_0_1 = b'\x01\x00\x004{"format":3,"id":"8f14e45fceea167a5a36dedd4bea2543"}'


def ended(data: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Return how a start ended that serves nothing."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PQADMIN_")}
    environment = clean | {"PQADMIN_DATA": str(data), **variables}
    return run_forked_text("serve", "--port", "0", *arguments, form=MANAGE, folder=data, env=environment)


def test_first_start_makes_everything_and_prints_the_password_once(serve, tmp_path: Path) -> None:
    first = serve(prepared=False)
    password = first.wait_for(r"Password\s+(\S+)").group(1)
    assert first.get("/livez") == (200, '{"status": "ok"}')
    assert first.get("/readyz")[0] == 200
    first.signal(signal.SIGTERM)
    assert first.exit_code() == 0
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert first.complained == []

    second = serve()
    assert second.get("/livez")[0] == 200
    assert not any("Password" in line for line in second.said)
    key = (tmp_path / "secret_key").read_text()
    second.signal(signal.SIGINT)
    assert second.exit_code() == 0
    assert not any(password in file.read_text(errors="ignore") for file in tmp_path.glob("*") if file.is_file())
    assert (tmp_path / "secret_key").read_text() == key


@pytest.mark.parametrize("command", ["serve --port 0", "create_user ann --role viewer"])
def test_a_first_start_that_cannot_show_the_password_makes_no_admin(serve, tmp_path: Path, command: str) -> None:
    prepare(tmp_path)
    environment = {**os.environ, "PQADMIN_DATA": str(tmp_path)}
    with Path("/dev/full").open("wb") as full:
        refused = run_forked_text(*command.split(), form=MANAGE, env=environment, stdout=full)
    assert refused.returncode == 1
    assert refused.stderr == (
        "Standard output cannot be written: No space left on device. "
        "No admin was created: start again where the password can be shown.\n"
    )
    log_in(serve())


def test_two_first_starts_at_once_make_one_admin(serve) -> None:
    sites = [serve(prepared=False), serve(prepared=False)]
    for site in sites:
        assert site.get("/readyz")[0] == 200
    assert sum("Password" in line for site in sites for line in site.said) == 1


def test_a_port_in_use_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = ended(tmp_path, "--port", str(port))
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        f"Port {port} of 127.0.0.1 is in use; choose another with --port or PQADMIN_PORT."
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "message"),
    [
        (("--host", "203.0.113.9"), {}, 1, "203.0.113.9 is no address of this machine"),
        (("--port", "70000"), {}, 2, "a port is a number from 0 to 65535"),
        ((), {"PQADMIN_DATA": "/proc/nowhere"}, 1, "the data folder /proc/nowhere cannot be used"),
        ((), {"PQADMIN_STORE": "redis:6379"}, 1, "The store redis:6379 cannot be used"),
        ((), {"PQADMIN_STORE": "lmdb:/proc/nowhere/store"}, 1, "The store lmdb:/proc/nowhere/store cannot be used"),
        ((), {"DATABASE_URL": "sqlite:////proc/nowhere/db"}, 1, "tables cannot be used"),
        ((), {"DATABASE_URL": "mysql://127.0.0.1/x"}, 2, "DATABASE_URL: people and sessions are kept in SQLite or"),
        ((), {"DATABASE_URL": "oracle://127.0.0.1/x"}, 2, "DATABASE_URL: people and sessions are kept in SQLite or"),
        (("--host", "a" * 64 + ".example.org"), {}, 1, ".example.org' is no address of this machine: "),
    ],
)
def test_what_cannot_work_is_said_on_one_line(tmp_path: Path, arguments, variables, code, message) -> None:
    prepare(tmp_path)
    refused = ended(tmp_path, *arguments, **variables)
    assert refused.returncode == code
    assert any(message in line for line in refused.stderr.splitlines()), refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_store_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    with closing(open_kv(f"lmdb:{tmp_path / 'store'}")) as kv:
        key = Keyspace(("pq",)).store
        kv.transact(lambda tr: tr.set(key, StoreRecord(format=999, id="0" * 32).encode()))
    prepare(tmp_path)
    refused = ended(tmp_path)
    assert refused.returncode == 1
    (told,) = refused.stderr.splitlines()
    assert "newer pqadmin" in told


def test_tables_of_0_1_stay_as_they_are_while_its_store_is_refused(tmp_path: Path) -> None:
    def migrations() -> int:
        with closing(sqlite3.connect(tmp_path / "site.sqlite3")) as tables:
            return tables.execute("SELECT count(*) FROM django_migrations").fetchone()[0]

    prepare(tmp_path)
    with closing(sqlite3.connect(tmp_path / "site.sqlite3")) as tables, tables:
        tables.execute("DELETE FROM django_migrations WHERE name = '0003_delete_sentform'")
    before = migrations()
    with closing(open_kv(f"lmdb:{tmp_path / 'store'}")) as kv:
        kv.transact(lambda tr: tr.set(Keyspace(("pq",)).store, OF_0_1))
    refused = ended(tmp_path)
    assert refused.returncode == 1
    (told,) = refused.stderr.splitlines()
    assert "export_items" in told
    assert migrations() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_in_flight_is_finished(serve, number: signal.Signals) -> None:
    """The body of a login form is sent only after the signal: the answer still comes, and then the end."""
    site = serve()
    host, port = site.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        body = b"username=stranger&password=wrong"
        connection.sendall(
            b"POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n" + f"Content-Length: {len(body)}\r\n\r\n".encode()
        )
        connection.sendall(body[:5])
        assert site.get("/livez")[0] == 200  # the first part has been read by then: one loop reads both
        site.signal(number)
        _wait_until_refused(host, int(port))
        connection.sendall(body[5:])
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 403"), answer[:200]  # no CSRF token: answered by Django, not cut off
    assert site.exit_code() == 0
    (said,) = site.complained
    assert "CSRF cookie not set" in said


def test_a_request_of_which_the_rest_never_comes_is_dropped_without_a_word(serve) -> None:
    site = serve()
    host, port = site.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(b"POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\n1")
        assert site.get("/livez")[0] == 200
        site.signal(signal.SIGTERM)
        assert site.exit_code() == 0
    assert site.complained == []


def test_a_second_interrupt_ends_at_once(serve) -> None:
    site = serve()
    host, port = site.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(b"POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\n1")
        assert site.get("/livez")[0] == 200
        site.signal(signal.SIGINT)
        _wait_until_refused(host, int(port))
        site.signal(signal.SIGINT)
        assert site.exit_code() == 130


def test_an_ipv6_address_is_printed_in_brackets(serve) -> None:
    if not socket.has_ipv6 or not _can_bind_ipv6():
        pytest.skip("this machine has no IPv6 loopback")
    site = serve("--host", "::1")
    assert re.fullmatch(r"http://\[::1\]:\d+", site.address)
    assert site.get("/livez")[0] == 200


def test_runs_in_a_folder_that_cannot_be_written(serve, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    site = serve()
    assert site.exit_code() == 1
    assert "Permission denied" in site.complained[-1]


def test_a_start_forgets_expired_sessions(serve, tmp_path: Path) -> None:
    prepare(tmp_path)
    with closing(sqlite3.connect(tmp_path / "site.sqlite3")) as tables:
        tables.execute("INSERT INTO django_session VALUES ('new', '', '2999-01-01 00:00:00')")
        tables.execute("INSERT INTO django_session VALUES ('old', '', '2001-01-01 00:00:00')")
        tables.commit()
        assert serve().get("/readyz")[0] == 200
        deadline = time.monotonic() + PATIENCE
        while len(kept := tables.execute("SELECT session_key FROM django_session").fetchall()) > 1:
            assert time.monotonic() < deadline
        assert kept == [("new",)]


def _wait_until_refused(host: str, port: int) -> None:
    """Return when the server has stopped listening; each try is a real connection, no time is guessed."""
    while True:
        try:
            socket.create_connection((host, port), timeout=PATIENCE).close()
        except ConnectionError:
            return


def _can_bind_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_a_damaged_store_is_told_on_pages_until_it_is_put_back(serve, tmp_path: Path) -> None:
    """The site goes on: a supervisor would start it again and again."""
    folder = tmp_path / "store"
    make_store(folder)
    whole = (folder / "data.mdb").read_bytes()
    (folder / "data.mdb").write_bytes(whole[: len(whole) // 2])
    site = serve(PQADMIN_STORE=f"lmdb:{folder}")
    site.wait_for("cannot be used yet: .* is damaged: .*backup")
    for path, expected in (("/livez", 200), ("/readyz", 503), ("/accounts/login/", 200)):
        try:
            status = site.get(path)[0]
        except urllib.error.HTTPError as error:
            status = error.code
        assert status == expected, path
    assert site.process.poll() is None
    assert not [line for line in site.complained if "Traceback" in line]
    site.signal(signal.SIGTERM)
    assert site.exit_code() == 0


def test_behind_a_proxy_that_is_not_declared_the_log_and_the_admins_pages_say_so(serve) -> None:
    site = serve()
    cookies = log_in(site)
    forwarded = {"X-Forwarded-For": "203.0.113.5", "X-Forwarded-Proto": "https", "Cookie": cookies}
    for headers, said in ((forwarded, True), (forwarded, True), ({"Cookie": cookies}, False)):
        request = urllib.request.Request(f"{site.address}/", headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as page:
            assert ("PQADMIN_TRUSTED_PROXY=127.0.0.1" in page.read().decode()) is said
    site.stop()
    (line,) = (line for line in site.complained if "PQADMIN_TRUSTED_PROXY=127.0.0.1" in line)
    assert "cookies are not Secure" in line


def test_a_declared_proxy_is_not_complained_of(serve) -> None:
    site = serve(PQADMIN_TRUSTED_PROXY="127.0.0.1")
    headers = {"X-Forwarded-For": "203.0.113.5", "X-Forwarded-Proto": "https", "Cookie": log_in(site)}
    request = urllib.request.Request(f"{site.address}/", headers=headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as page:
        assert "data-undeclared-proxy" not in page.read().decode()
        assert all("Secure" in each for each in page.headers.get_all("Set-Cookie") or [])
    site.stop()
    assert site.complained == []
