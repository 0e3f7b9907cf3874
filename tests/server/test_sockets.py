"""The live socket of a real server: who gets one, and what its end looks like."""

import http.cookiejar
import re
import signal
import urllib.parse
import urllib.request

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.server.conftest import PATIENCE


def log_in(site) -> str:
    """Log the first admin in the way a browser does; return the cookies."""
    password = site.wait_for(r"Password\s+(\S+)").group(1)
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    login = f"{site.address}/accounts/login/"
    with browser.open(login, timeout=PATIENCE) as page:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode()).group(1)
    form = {"username": "admin", "password": password, "csrfmiddlewaretoken": token}
    with browser.open(login, urllib.parse.urlencode(form).encode(), timeout=PATIENCE) as overview:
        assert overview.url == f"{site.address}/"
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


def open_socket(site, path: str = "/live/", **headers: str):
    return connect(site.address.replace("http", "ws") + path, additional_headers=headers, open_timeout=PATIENCE)


def test_the_socket_of_a_logged_in_page_is_told_when_the_server_goes(serve) -> None:
    site = serve()
    cookies = log_in(site)
    with open_socket(site, Cookie=cookies, Origin=site.address) as live:
        assert live.recv(timeout=PATIENCE)
        site.signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as closed:
            read_to_the_end(live)
        assert closed.value.rcvd.code == 1012
    assert site.exit_code() == 0
    assert site.complained == []


def test_who_gets_no_socket(serve) -> None:
    """Another origin, another address, a stranger; and none of it makes noise in the log."""
    site = serve()
    cookies = log_in(site)
    for origin in (None, "http://evil.example", "http://127.0.0.1:1"):
        headers = {"Cookie": cookies} | ({"Origin": origin} if origin else {})
        with pytest.raises(InvalidStatus) as refused:
            open_socket(site, **headers)
        assert refused.value.response.status_code == 403
    with pytest.raises(InvalidStatus) as refused:
        open_socket(site, "/elsewhere/", Cookie=cookies, Origin=site.address)
    assert refused.value.response.status_code == 403
    with pytest.raises((InvalidStatus, ConnectionClosed)):
        read_to_the_end(open_socket(site, Origin=site.address))
    site.signal(signal.SIGTERM)
    assert site.exit_code() == 0
    assert site.complained == []


def read_to_the_end(live) -> None:
    """Receive until the connection is closed, which raises."""
    with live:
        while True:
            live.recv(timeout=PATIENCE)
