"""The tables of a site in PostgreSQL, which keeps no text with U+0000 and none that is too long."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from typing import NamedTuple
from urllib.parse import quote

import pytest

from tests.api.postgresql import postgresql
from tests.api.test_served import call
from tests.programs import run_to_end
from tests.server.conftest import ROOT, Site, send_login

pytestmark = pytest.mark.slow


class Served(NamedTuple):
    """A site and the address of its database."""

    site: Site
    database: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("postgresql")
    (data := folder / "data").mkdir()
    with postgresql(folder) as database:
        site = Site(data, prepared=False, DATABASE_URL=database)
        assert site.address
        yield Served(site, database)
        site.stop()


def authorized(served: Served, name: str) -> dict[str, str]:
    """Return the header of a new token that may do everything."""
    made = run_to_end(
        [sys.executable, str(ROOT / "manage.py"), "create_token", name, "--queues", "*", "--verbs", "all,administer"],
        env={**os.environ, "PQADMIN_DATA": str(served.site.data), "DATABASE_URL": served.database},
        check=True,
    )
    return {"Authorization": f"Bearer {made.stdout.splitlines()[-1]}"}


def test_texts_that_the_tables_cannot_keep_are_refused(served: Served) -> None:
    site, headers = served.site, authorized(served, "tester")
    person = {"name": "person", "role": "viewer"}
    for path, body in (("queues", {"name": "jobs"}), ("boards", {"name": "wall"}), ("people", person)):
        assert call(site, "POST", path, body, **headers)[0] == 201
    for odd in ("\0", "a\0b"):
        part = quote(odd)
        for path in (f"people?q={part}&after={part}", f"tokens?q={part}&after={part}", f"tokens?q={part}&revoked=true"):
            assert call(site, "GET", path, **headers)[0] == 200
        fields = ("name", "value", "priority", "delay", "due", "zone")
        for method, path, asked in (
            *(("POST", "queues/jobs/templates", {"name": "t", name: odd}) for name in fields),
            ("POST", "people", {"name": odd, "role": "viewer"}),
            ("POST", "people", {"name": "x", "role": "viewer", "grants": [{"queues": odd, "role": "viewer"}]}),
            ("GET", f"people/{part}", None),
            ("PUT", f"people/{part}/role", {"role": "viewer"}),
            ("PUT", f"people/person/grants/{part}", {"role": "viewer"}),
            ("DELETE", f"people/person/grants/{part}", None),
            ("POST", f"people/{part}/deactivate", None),
            ("POST", f"people/{part}/password", None),
            *(("POST", "boards", {"name": "b", name: odd}) for name in ("name", "slug", "language")),
            *(("POST", "boards", {"name": "b", name: [odd]}) for name in ("globs", "rotation")),
            ("GET", f"boards/{part}", None),
            ("PATCH", "boards/wall", {"name": odd}),
            ("DELETE", f"boards/{part}", None),
            ("POST", "boards/wall/links", {"label": odd}),
            *(("DELETE", f"{path}/{n}", None) for path in ("tokens", "boards/wall/links") for n in (2**63 - 1, 2**63)),
        ):
            status, _, found = call(site, method, path, asked, **headers)
            assert 400 <= status < 500, (method, path, asked, found)


def test_a_token_of_the_longest_name_makes_what_has_the_longest_names(served: Served) -> None:
    site, headers = served.site, authorized(served, "n" * 100)
    grant = {"queues": "q" * 200, "role": "viewer"}
    for path, body in (
        ("queues", {"name": "long"}),
        ("queues/long/templates", {"name": "n" * 80}),
        ("people", {"name": "n" * 150, "role": "viewer", "grants": [grant]}),
        ("boards", {"name": "n" * 80, "slug": "s" * 60}),
        (f"boards/{'s' * 60}/links", {"label": "n" * 80}),
    ):
        status, _, found = call(site, "POST", path, body, **headers)
        assert status == 201, (path, found)
    for path, body in (
        ("queues/long/templates", {"name": "n" * 81}),
        ("people", {"name": "n" * 151, "role": "viewer"}),
        ("people", {"name": "o", "role": "viewer", "grants": [{**grant, "queues": "q" * 301}]}),
        ("boards", {"name": "n" * 81}),
        ("boards", {"name": "n", "slug": "s" * 61}),
        (f"boards/{'s' * 60}/links", {"label": "n" * 81}),
    ):
        status, _, found = call(site, "POST", path, body, **headers)
        assert status in {409, 422}, (path, found)


def session(site: Site, name: str, password: str) -> dict[str, str]:
    """Log a person in; return the headers of the session."""
    jar = CookieJar()
    send_login(site, name, password, jar).close()
    cookies = {cookie.name: str(cookie.value) for cookie in jar}
    return {
        "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()),
        "X-CSRFToken": cookies["pqadmin_csrf"],
    }


def test_of_two_admins_that_demote_each_other_at_once_one_stays(served: Served) -> None:
    site = served.site
    first = session(site, "admin", site.wait_for(r"Password\s+(\S+)").group(1))
    sessions = {"admin": first}

    def give(by: str, name: str, role: str) -> int:
        body = {"role": role, "confirm": name}
        return int(call(site, "PUT", f"people/{name}/role", body, **sessions[by])[0])

    person = {"name": "second", "role": "viewer"}
    sessions["second"] = session(site, "second", call(site, "POST", "people", person, **first)[2]["password"])
    assert give("admin", "second", "admin") == 200
    with ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            statuses = list(pool.map(give, sessions, reversed(sessions), ("viewer", "viewer")))
            assert sorted(statuses) in ([200, 403], [200, 409]), statuses
            kept, lost = sessions if statuses[0] == 200 else reversed(sessions)
            assert give(kept, lost, "admin") == 200
