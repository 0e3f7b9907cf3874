"""Health, headers and the pages for what went wrong."""

import logging
import re
from io import StringIO

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import path

from pqadmin import urls
from pqadmin.accounts.roles import Role, grant
from pqadmin.conf.log import FewOfClients, OneLine
from pqadmin.pages import error_pages
from pqadmin.server import health
from pqadmin.server.security import security_headers
from queues.admin import LogLimit
from queues.errors import KeyTooLarge, OutcomeUnknown, QueueNotFound, StoreFull, StoreReadOnly, StoreUnavailable
from tests.health import probe

TRACEBACK = re.compile(r'Traceback|File ".*", line \d+')


def broken(request: HttpRequest, error: str) -> HttpResponse:
    """Raise what is asked for; only these tests have this view."""
    raise {
        "unavailable": StoreUnavailable("The store is at lunch."),
        "read-only": StoreReadOnly("The store cannot be written."),
        "full": StoreFull("No room is left."),
        "unknown": OutcomeUnknown("It may have been applied."),
        "too-large": KeyTooLarge("The key has 600 bytes."),
        "database": OperationalError("database or disk is full"),
        "mistake": IntegrityError("secret detail"),
        "bug": ZeroDivisionError("secret detail"),
        "not-found": QueueNotFound("jobs"),
    }[error]


urlpatterns = [path("broken/<str:error>/", broken), *urls.urlpatterns]
handler400, handler403, handler404, handler500 = urls.handler400, urls.handler403, urls.handler404, urls.handler500


@pytest.fixture
def client(db, settings) -> Client:
    """An operator's browser on the site with the broken view."""
    settings.ROOT_URLCONF = __name__
    user = User.objects.create(username="ann")
    grant(user, Role.OPERATOR)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def test_livez_asks_nothing_of_store_or_database() -> None:
    answer = probe("/livez")
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_readyz_tells_that_all_parts_are_well(db) -> None:
    answer = probe()
    assert answer.json == {"status": "ok", "checks": {"store": "ok", "database": "ok", "disk": "ok"}}
    assert answer.headers["cache-control"] == "no-store, private"


def test_readyz_says_which_part_is_away(db, monkeypatch) -> None:
    def away() -> None:
        raise StoreUnavailable("The store is at lunch.")

    monkeypatch.setattr(health, "get_store", away)
    answer = probe()
    assert answer.status == 503
    assert answer.json["status"] == "unavailable"
    assert answer.json["checks"] == {"store": "unavailable", "database": "ok", "disk": "ok"}
    assert answer.headers["retry-after"] == "5"


def test_readyz_answers_503_without_a_database(db, monkeypatch) -> None:
    class Down:
        def cursor(self) -> None:
            raise DatabaseError("password=hunter2")

    monkeypatch.setattr(health, "connection", Down())
    answer = probe()
    assert answer.status == 503
    assert answer.json["checks"] == {"store": "ok", "database": "unavailable", "disk": "ok"}
    assert b"hunter2" not in answer.content


@pytest.mark.parametrize("address", ["/livez", "/readyz"])
def test_health_is_only_read(db, address: str) -> None:
    assert probe(address, "POST").status == 405


@pytest.mark.parametrize("address", ["/livez", "/readyz"])
def test_health_carries_the_headers_too(db, address: str) -> None:
    headers = probe(address).headers
    assert {name: headers[name.lower()] for name in HEADERS} == HEADERS
    assert probe(address, "HEAD").content == b""
    assert probe(address, "HEAD").headers == headers


HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def test_a_view_may_say_how_long_it_may_be_kept() -> None:
    request = RequestFactory().get("/")
    answer = security_headers(lambda request: HttpResponse(headers={"Cache-Control": "max-age=60"}))(request)
    assert answer.headers["Cache-Control"] == "max-age=60"


def test_pages_have_nothing_inline(client) -> None:
    for address in ("/", "/accounts/password/", "/nowhere/", "/broken/unavailable/", "/broken/bug/"):
        page = client.get(address).content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", page), address


@pytest.mark.parametrize("error", ["unavailable", "read-only", "full", "unknown"])
def test_store_errors_are_503_and_say_what_happened(client, error: str) -> None:
    answer = client.get(f"/broken/{error}/")
    page = answer.content.decode()
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert {"unavailable": "at lunch", "read-only": "written", "full": "No room", "unknown": "may have been"}[
        error
    ] in page
    assert 'http-equiv="refresh"' in page
    assert "<header" in page


def test_an_act_that_met_a_store_error_is_not_sent_again_by_itself(client) -> None:
    page = client.post("/broken/unavailable/").content.decode()
    assert 'http-equiv="refresh"' not in page
    assert "Nothing was changed" in page
    unknown = client.post("/broken/unknown/").content.decode()
    assert "Nothing was changed" not in unknown
    assert "Look whether it happened" in unknown


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_database_that_is_away_is_503_without_detail(client, method: str, caplog) -> None:
    answer = client.generic(method, "/broken/database/")
    page = answer.content.decode()
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert "tables cannot be reached" in page
    assert ("Nothing was changed" in page) is (method == "POST")
    assert "disk is full" not in page
    assert not TRACEBACK.search(page)
    assert not [record for record in caplog.records if record.exc_info]


def test_tables_that_are_away_before_any_view_are_503_too(client) -> None:
    def away(execute, sql, params, many, context) -> None:
        raise OperationalError("disk I/O error")

    with connection.execute_wrapper(away):
        for answer in (client.get("/"), client.post("/queues/jobs/push/"), client.post("/accounts/login/")):
            assert answer.status_code == 503
            assert answer.headers["Retry-After"] == "5"
            assert not TRACEBACK.search(answer.content.decode())


def test_tables_that_cannot_be_written_refuse_a_login(client) -> None:
    def full(execute, sql, params, many, context):
        if not sql.lstrip("( ").startswith("SELECT"):
            raise OperationalError("database or disk is full")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(full):
        answer = Client(raise_request_exception=False).post("/accounts/login/", {"username": "ann", "password": "x"})
    assert answer.status_code == 503
    assert "Nothing was changed" in answer.content.decode()


def test_what_is_too_large_is_no_outage(client) -> None:
    assert client.get("/broken/too-large/").status_code == 400


def test_a_mistake_with_the_database_is_no_outage(client) -> None:
    answer = client.get("/broken/mistake/")
    assert answer.status_code == 500
    assert "secret detail" not in answer.content.decode()


@pytest.mark.parametrize("address", ["/queues/jobs/put-back/", "/theme/", "/accounts/logout/"])
def test_a_link_to_what_only_a_form_does_gets_a_page(client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]
    assert "takes only what a form sends" in answer.content.decode()
    assert "<header" in answer.content.decode()


def test_a_form_sent_to_what_is_only_read_gets_a_page(client) -> None:
    answer = client.post("/audit/")
    assert answer.status_code == 405
    assert "can only be read" in answer.content.decode()


def test_a_mistake_of_the_site_shows_no_detail(client, caplog) -> None:
    answer = client.get("/broken/bug/")
    page = answer.content.decode()
    assert answer.status_code == 500
    assert "The site made a mistake" in page
    assert "<header" in page
    assert "secret detail" not in page
    assert not TRACEBACK.search(page)
    assert [record.levelname for record in caplog.records if record.name == "django.request"] == ["ERROR"]


def test_not_found_is_styled(client) -> None:
    answer = client.get("/nowhere/")
    assert answer.status_code == 404
    assert "There is nothing at this address" in answer.content.decode()


def test_a_wrong_host_is_a_bad_request(client) -> None:
    answer = client.get("/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "Nothing was changed" in answer.content.decode()
    assert "evil.example" not in answer.content.decode()


def test_a_role_that_does_not_do_is_told_which_does(client) -> None:
    page = client.get("/styleguide/").content.decode()
    assert "needs the role <b>admin</b>; you have: <b>operator</b>" in page


@pytest.mark.parametrize("status", [400, 403, 404, 500, 503])
def test_a_page_is_made_even_without_templates(status: int, monkeypatch, rf, caplog) -> None:
    def away(*args: object, **kwargs: object) -> str:
        raise RuntimeError("no templates")

    monkeypatch.setattr(error_pages.loader, "render_to_string", away)
    answer = error_pages.page(rf.get("/"), status, title="<b>Oh</b>", headers={"Retry-After": "5"})
    page = answer.content.decode()
    assert answer.status_code == status
    assert "&lt;b&gt;Oh&lt;/b&gt;" in page
    assert answer.headers["Retry-After"] == "5"
    assert not TRACEBACK.search(page)
    assert len([record for record in caplog.records if record.name == error_pages.__name__]) == 2


def test_error_pages_without_request_use_no_context_processor(monkeypatch) -> None:
    def away(request: HttpRequest) -> dict[str, object]:
        raise DatabaseError("down")

    monkeypatch.setattr("pqadmin.accounts.context.account", away)
    assert b"<header" in error_pages.server_error(RequestFactory().get("/")).content


def test_debug_is_off_and_the_deploy_check_is_silent(db, settings) -> None:
    from django.core.management import call_command

    # Without what Django's test runner added, which looks like a site visited through a proxy.
    settings.ALLOWED_HOSTS = [name for name in settings.ALLOWED_HOSTS if name != "testserver"]
    assert django_settings.DEBUG is False
    call_command("check", "--deploy", "--fail-level", "WARNING")


def test_log_is_one_line() -> None:
    try:
        try:
            raise ValueError("cause\nof it")
        except ValueError as cause:
            raise RuntimeError("what\nhappened") from cause
    except RuntimeError as error:
        record = logging.LogRecord(
            "pq", logging.ERROR, __file__, 1, "a\nb %s", ("c",), (RuntimeError, error, error.__traceback__)
        )
    line = OneLine().format(record)
    assert "\n" not in line
    assert re.match(
        r"\d{4}-\d\d-\d\dT[\d:.]+Z ERROR pq: a \| b c \| RuntimeError: what \| happened \(after ValueError", line
    )


def test_lines_that_any_client_can_cause_are_written_once_a_minute() -> None:
    now, out = [0.0], StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(FewOfClients(LogLimit(logging.getLogger("pq"), monotonic=lambda: now[0])))

    def log(name: str) -> None:
        handler.handle(logging.LogRecord(name, logging.ERROR, __file__, 1, "%s is bad", ("this",), None))

    for name in ("django.security.csrf", "daphne.ws_protocol", "pqadmin.store"):
        for _ in range(3):
            log(name)
    assert out.getvalue() == "this is bad\n" * (1 + 1 + 3)
    now[0] = 61.0
    log("django.security.csrf")
    assert out.getvalue().endswith("this is bad (2 more like this since the last line)\n")
    assert "few_of_clients" in django_settings.LOGGING["handlers"]["stderr"]["filters"]
