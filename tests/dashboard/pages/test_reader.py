"""What a reader chooses for himself: language and time zone. Both without script."""

import re

import pytest
from django.conf import settings
from django.utils import translation

from queues import Store
from tests.dashboard.conftest import Desk

PUSHED = re.compile(r'Pushed</dt><dd><time datetime="([^"]+)" title="([^"]+)">([^<]+)</time>')


def test_times_are_in_the_chosen_zone_with_utc_on_hover(operator: Desk, store: Store) -> None:
    item = store.create_queue("jobs", kind="fifo").enqueue(b"x")
    page = operator.open("/")
    back = operator.send(page, "/time-zone/", zone="Asia/Kolkata", next="/audit/")
    assert back.path == "/audit/"
    found = PUSHED.search(operator.open(f"/queues/jobs/items/{item.id}/").html)
    iso, hover, text = found.groups()
    assert iso.endswith("+00:00")
    assert text.endswith("UTC+5:30")
    assert hover == f"{text} · {iso[:19].replace('T', ' ')} UTC"
    assert 'data-time-zone="Asia/Kolkata"' in operator.send(back, "/theme/", theme="dark").html
    assert 'data-time-zone="UTC"' in operator.send(back, "/time-zone/", zone="UTC").html


def test_the_browsers_zone_is_taken_until_another_is_chosen(operator: Desk, store: Store) -> None:
    operator.client.cookies["pqadmin_browser_zone"] = "Asia/Tokyo"
    page = operator.open("/")
    assert 'data-time-zone="Asia/Tokyo"' in page.html
    assert 'data-time-zone="UTC"' in operator.send(page, "/time-zone/", zone="UTC").html
    operator.client.cookies["pqadmin_browser_zone"] = "Europe/Berlin"
    assert 'data-time-zone="UTC"' in operator.open("/").html, "what is chosen stays"


def test_an_unknown_zone_is_refused_in_words(operator: Desk, store: Store) -> None:
    page = operator.open("/")
    assert "No time zone has this name" in operator.send(page, "/time-zone/", zone="Mars/Olympus").html
    operator.client.cookies["pqadmin_time_zone"] = "../../etc/passwd"
    assert 'data-time-zone="UTC"' in operator.open("/").html


def test_the_choice_leads_nowhere_else(operator: Desk, store: Store) -> None:
    page = operator.open("/")
    for to, typed in (("/time-zone/", {"zone": "UTC"}), ("/language/", {"language": "en"})):
        astray = operator.send(page, to, next="https://evil.example/", **typed)
        assert astray.path == "/"


def test_the_language_is_chosen_before_and_after_signing_in(operator: Desk, store: Store) -> None:
    chosen = operator.send(operator.open("/"), "/language/", language="zh-hans")
    assert '<html lang="zh-hans"' in chosen.html
    login = operator.send(chosen, "/accounts/logout/")
    assert '<html lang="zh-hans"' in login.html
    assert '<html lang="en"' in operator.send(login, "/language/", language="en").html
    translation.deactivate()  # a request leaves its language behind in its thread


@pytest.mark.parametrize("chosen", ["en", "zh-hans"])
@pytest.mark.parametrize("path", ["/", "/accounts/login/"])
def test_each_language_is_named_in_itself(path: str, chosen: str, operator: Desk, english_again: None) -> None:
    operator.client.cookies[settings.LANGUAGE_COOKIE_NAME] = chosen
    if path != "/":
        operator.client.logout()
    buttons = re.findall(r'name="language" value="[\w-]+" lang="([\w-]+)"[^>]*>([^<]+)<', operator.open(path).html)
    assert buttons == [("en", "English"), ("zh-hans", "简体中文")]
