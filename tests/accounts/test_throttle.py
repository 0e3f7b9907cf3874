"""Guessing passwords has to wait."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from pqadmin.accounts import throttle
from pqadmin.accounts.models import LoginAttempt
from pqadmin.accounts.roles import Role
from pqadmin.accounts.throttle import PER_ACCOUNT, PER_ACCOUNT_AND_ADDRESS, PER_ADDRESS, WINDOW
from tests.accounts.conftest import PASSWORD

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)

pytestmark = pytest.mark.django_db


def fail(times: int, *, account: str = "ann", address: str = "192.0.2.1", now: datetime = NOW) -> None:
    for _ in range(times):
        assert throttle.begin(account=account, address=address, now=now).allowed


def begin(account: str = "ann", address: str = "192.0.2.1", now: datetime = NOW) -> throttle.Attempt:
    return throttle.begin(account=account, address=address, now=now)


def test_the_sixth_attempt_on_one_account_waits_until_the_first_is_old() -> None:
    fail(1)
    fail(PER_ACCOUNT_AND_ADDRESS - 1, now=NOW + 60 * SECOND)
    refused = begin(now=NOW + 61 * SECOND)
    assert refused.retry_after == WINDOW - 61 * SECOND
    assert not begin(now=NOW + WINDOW - SECOND).allowed
    assert begin(now=NOW + WINDOW).allowed
    assert not begin(now=NOW + WINDOW).allowed


def test_asking_while_blocked_does_not_prolong_it() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS)
    for second in range(1, 30):
        assert not begin(now=NOW + second * SECOND).allowed
    assert begin(now=NOW + WINDOW).allowed


def test_case_of_the_name_makes_no_other_account() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS)
    assert not begin(account="ANN").allowed


def test_another_address_is_not_locked_out() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS)
    assert begin(address="192.0.2.2").allowed


def test_one_address_trying_many_accounts_waits() -> None:
    for number in range(PER_ADDRESS):
        fail(1, account=f"person-{number}")
    assert not begin(account="yet-another").allowed
    assert begin(account="yet-another", address="192.0.2.2").allowed


def test_a_whole_ipv6_network_is_one_address() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS, address="2001:db8::1")
    assert not begin(address="2001:db8::ffff:1").allowed
    assert begin(address="2001:db8:0:1::1").allowed


def test_success_forgets_the_failures() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS - 1)
    last = begin()
    throttle.succeed(last, account="ann", address="192.0.2.1")
    fail(PER_ACCOUNT_AND_ADDRESS)


def test_success_on_an_own_account_does_not_reset_the_address() -> None:
    for number in range(PER_ADDRESS - 1):
        fail(1, account=f"person-{number}")
    throttle.succeed(begin(account="mine"), account="mine", address="192.0.2.1")
    fail(1, account="one-more")
    assert not begin(account="the-next").allowed


def test_rows_do_not_pile_up() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS)
    begin(now=NOW + 2 * WINDOW)
    assert LoginAttempt.objects.count() == 3


def test_hostile_names_are_only_keys() -> None:
    fail(1, account="\ud800\0" * 10_000, address="not an address")


def test_the_login_page_refuses_even_the_right_password_while_blocked(person) -> None:
    person(Role.VIEWER, "ann")
    client = Client()
    for _ in range(PER_ACCOUNT_AND_ADDRESS):
        answer = client.post("/accounts/login/", {"username": "ann", "password": "wrong"})
        assert answer.status_code == 422
    answer = client.post("/accounts/login/", {"username": "ann", "password": PASSWORD})
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= WINDOW.total_seconds()
    assert "Too many failed logins. Try again in 15 minutes." in answer.content.decode()
    assert client.get("/").status_code == 302


def test_many_addresses_trying_one_account_wait_and_others_do_not() -> None:
    for number in range(PER_ACCOUNT):
        fail(1, address=f"198.51.100.{number}")
    assert not begin(address="203.0.113.1").allowed
    assert begin(account="bob", address="203.0.113.1").allowed
    assert begin(address="203.0.113.1", now=NOW + WINDOW).allowed
