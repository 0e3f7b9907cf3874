"""Guessing passwords has to wait."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pqadmin.accounts import throttle
from pqadmin.accounts.models import LoginAttempt
from pqadmin.accounts.roles import Role
from pqadmin.accounts.throttle import PER_ACCOUNT, PER_ACCOUNT_AND_ADDRESS, PER_ADDRESS, PER_PERSON, WINDOW
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


def test_another_address_is_not_locked_out() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS)
    assert begin(address="192.0.2.2").allowed


def test_ipv4_visitors_of_a_site_that_listens_on_both_are_told_apart() -> None:
    """A socket on `::` names them `::ffff:192.0.2.1`: all of IPv4 was one /64, locked out by 30 wrong passwords."""
    for number in range(PER_ADDRESS):
        fail(1, account=f"person-{number}", address="::ffff:192.0.2.1")
    assert not begin(account="yet-another", address="192.0.2.1").allowed
    assert begin(account="yet-another", address="::ffff:192.0.2.2").allowed


def test_one_address_trying_many_accounts_waits() -> None:
    for number in range(PER_ADDRESS):
        fail(1, account=f"person-{number}")
    assert not begin(account="yet-another").allowed
    assert begin(account="yet-another", address="192.0.2.2").allowed


def test_success_forgets_the_failures() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS - 1)
    throttle.succeed(begin())
    fail(PER_ACCOUNT_AND_ADDRESS)


def test_success_on_an_own_account_does_not_reset_the_address() -> None:
    for number in range(PER_ADDRESS - 1):
        fail(1, account=f"person-{number}")
    throttle.succeed(begin(account="mine"))
    fail(1, account="one-more")
    assert not begin(account="the-next").allowed


def test_rows_do_not_pile_up() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS)
    begin(now=NOW + 2 * WINDOW)
    assert LoginAttempt.objects.count() == 3


def test_attempts_of_a_clock_that_was_set_back_lock_no_person_out() -> None:
    """A machine that began with a wrong clock counted them in the future."""
    fail(PER_ACCOUNT_AND_ADDRESS, now=NOW + timedelta(days=1))
    fail(PER_ACCOUNT_AND_ADDRESS)
    assert begin().retry_after == WINDOW
    assert begin(now=NOW + WINDOW).allowed


def test_attempts_of_a_clock_that_is_a_little_ahead_count() -> None:
    fail(PER_ACCOUNT_AND_ADDRESS, now=NOW + 10 * SECOND)
    assert not begin().allowed


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


def test_many_addresses_trying_one_account_wait_and_the_rest_do_not() -> None:
    for number in range(PER_ACCOUNT):
        fail(1, address=f"198.51.100.{number}")
    assert not begin(address="203.0.113.1").allowed
    assert begin(account="bob", address="203.0.113.1").allowed
    assert begin(address="203.0.113.1", now=NOW + WINDOW).allowed


#: Spellings that Django's login form takes for the account `boss`.
SPELLINGS = ("boss", " boss", "boss \t", "\u3000boss\u00a0", "ｂoss", "𝐛𝐨𝐬𝐬", "ⓑoss", "boſs", "BOSS", "ＢOSS ")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_that_logs_in_as_an_account_is_counted_as_that_account(person, spelling: str) -> None:
    person(Role.VIEWER, "boss")
    client = Client()
    for _ in range(PER_ACCOUNT_AND_ADDRESS):
        assert client.post("/accounts/login/", {"username": spelling, "password": "wrong"}).status_code == 422
    assert client.post("/accounts/login/", {"username": "boss", "password": PASSWORD}).status_code == 429


def test_spellings_from_many_addresses_share_the_limit_of_the_account() -> None:
    for number in range(PER_ACCOUNT):
        fail(1, account=SPELLINGS[number % len(SPELLINGS)], address=f"198.51.100.{number}")
    for spelling in SPELLINGS:
        assert not begin(account=spelling, address="203.0.113.1").allowed


def change(client: Client, old: str, new: str = "another-battery-staple", again: str = ""):
    form = {"old_password": old, "new_password1": new, "new_password2": again or new}
    return client.post("/accounts/password/", form)


@pytest.fixture
def ann(person) -> Client:
    client = Client()
    client.force_login(person(Role.VIEWER, "ann"))
    return client


def test_guesses_of_the_old_password_have_to_wait(ann) -> None:
    for _ in range(PER_PERSON):
        assert change(ann, "wrong").status_code == 200
    refused = change(ann, PASSWORD)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= WINDOW.total_seconds()
    assert "Too many wrong passwords. Try again in 15 minutes." in refused.content.decode()
    assert User.objects.get(username="ann").check_password(PASSWORD)


def test_guesses_of_the_old_password_are_counted_for_the_person_not_the_address_or_the_browser(ann, person) -> None:
    for number in range(PER_PERSON):
        other = Client(REMOTE_ADDR=f"198.51.100.{number}")
        other.force_login(User.objects.get(username="ann"))
        change(other, "wrong")
    assert change(ann, PASSWORD).status_code == 429
    bob = Client()
    bob.force_login(person(Role.VIEWER, "bob"))
    assert change(bob, PASSWORD).status_code == 302


def test_a_new_password_that_will_not_do_is_no_guess(ann) -> None:
    for _ in range(PER_PERSON + 1):
        assert change(ann, PASSWORD, new="short", again="other").status_code == 200
    assert change(ann, PASSWORD).status_code == 302


def test_a_change_forgets_the_wrong_guesses_before_it(ann) -> None:
    for _ in range(PER_PERSON - 1):
        change(ann, "wrong")
    assert change(ann, PASSWORD).status_code == 302
    for _ in range(PER_PERSON):
        assert change(ann, "wrong").status_code == 200


def test_the_admin_pages_have_no_second_form_for_the_own_password(person) -> None:
    root = Client()
    root.force_login(person(Role.ADMIN, "root"))
    form = {"old_password": "wrong", "new_password1": "a-new-password-1", "new_password2": "a-new-password-1"}
    for answer in (root.get("/admin/password_change/"), root.post("/admin/password_change/", form)):
        assert (answer.status_code, answer.url) == (302, "/accounts/password/")


def test_wrong_codes_from_elsewhere_do_not_lock_screens_out() -> None:
    for number in range(250):
        assert throttle.begin_code(address=f"10.0.{number}.1", now=NOW).allowed
    assert throttle.begin_code(address="192.0.2.1", now=NOW).allowed


def test_codes_from_all_addresses_together_have_a_limit() -> None:
    throttle.begin_code(address="192.0.2.1", now=NOW)
    # The key of all codes is the one that attempts from two addresses share.
    mine = set(LoginAttempt.objects.values_list("key", flat=True))
    throttle.begin_code(address="192.0.2.2", now=NOW)
    (shared,) = mine & set(LoginAttempt.objects.values_list("key", flat=True).order_by("-pk")[:2])
    LoginAttempt.objects.bulk_create([LoginAttempt(key=shared, at=NOW)] * (throttle.ALL_CODES - 2))
    assert throttle.begin_code(address="192.0.2.3", now=NOW + SECOND).retry_after == WINDOW - SECOND
    assert throttle.begin_code(address="192.0.2.3", now=NOW + WINDOW).allowed
