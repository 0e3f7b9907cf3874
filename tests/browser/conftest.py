"""What the browser suite shares: the real server in a process of its own, a real Chromium, and a strict page.

A page fixture fails its test when the console showed an error, the content security policy was violated, or a script
threw. Run it by itself: `pytest tests/browser`.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, WebSocketRoute, expect, sync_playwright

from queues import Queue, Store
from tests.browser.contexts import Contexts
from tests.browser.operator import Operator
from tests.emptying import emptied
from tests.ports import free_port
from tests.prepared import prepare
from tests.schemas import validate
from tests.site.run_all import CHROMIUM

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",
]
#: Seconds; reached only when something hangs.
PATIENCE = 90.0
expect.set_options(timeout=PATIENCE * 1000)  # what a context waits for at the most is not for assertions


class Site:
    """One data folder and the server on it, started as the README starts it; `settings` are variables besides."""

    def __init__(self, data: Path, store_url: str = "", settings: Mapping[str, str] | None = None) -> None:
        self.data = data
        self.settings = dict(settings or {})
        #: The store's URL, for other processes too.
        self.store_url = store_url or f"lmdb:{data / 'store'}"
        self.port = free_port()
        self.password = ""
        self.said: list[str] = []
        self.process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        """The site's address without the last slash."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def _variables(self) -> dict[str, str]:
        return {"PQADMIN_DATA": str(self.data), "PQADMIN_STORE": self.store_url, **self.settings}

    def start(self) -> None:
        """Start the server and wait until it serves."""
        prepare(self.data)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PQADMIN_")}
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "serve", "--port", str(self.port)],
            env=clean | self._variables | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        ready = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout, ready), daemon=True)
        self._reader.start()
        assert ready.wait(PATIENCE), "".join(self.said)
        assert self.process.poll() is None, "".join(self.said)

    def _read(self, output: Any, ready: threading.Event) -> None:
        with output:
            for line in output:
                self.said.append(line)
                if found := re.search(r"Password\s+(\S+)", line):
                    self.password = found.group(1)
                if re.search(r"Store\s+(lmdb|fdb):", line):
                    ready.set()
        ready.set()

    def kill(self) -> None:
        """End the server without any warning."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server as Ctrl-C does."""
        self._end(signal.SIGINT)

    def manage(self, *arguments: str, stdin: str | None = None) -> str:
        """Run a command of manage.py on this site and return what it printed."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PQADMIN_")}
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments],
            env=clean | self._variables,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)
            self._reader.join(PATIENCE)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A running site with an empty store."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def store(site: Site) -> Iterator[Store]:
    """The site's store without queues, opened by this process: another one than the server's."""
    with emptied(site.store_url) as opened:
        yield opened


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """One Chromium: the system's, or the one that Playwright brought."""
    path = os.environ.get("PQ_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The Chromium of all tests."""
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def signed_in(site: Site, chromium: Browser) -> Any:
    """The cookies of the admin, signed in through the page."""
    context = chromium.new_context(base_url=site.address)
    page = context.new_page()
    sign_in(page, "admin", site.password)
    state = context.storage_state()
    context.close()
    return state


def sign_in(page: Page, name: str, password: str) -> None:
    """Sign in through the login page."""
    page.goto("/accounts/login/")
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", password)
    page.click("main button[type=submit], main form button")
    page.wait_for_url(lambda url: "/accounts/login" not in url)


#: What Chromium says when a page gives up a connection that takes long: it does so by its clock, which a test may set.
GIVEN_UP = "WebSocket is closed before the connection is established"


#: Has the limits of time of a page's requests go by its clock, which a test may set.
LIMITS = """
    AbortSignal.timeout = (wait) => {
        const limit = new AbortController();
        setTimeout(() => limit.abort(), wait);
        return limit.signal;
    };
"""


class Strict:
    """Notes what a page must not do."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        #: Faults that the test provokes itself, as patterns.
        self.allowed: list[str] = [GIVEN_UP]

    def watch(self, page: Page) -> None:
        """Note errors on the console, policy violations and uncaught exceptions."""
        page.on("console", self._console)
        page.on("websocket", lambda socket: socket.on("framereceived", partial(self._frame, socket.url)))
        page.on("pageerror", lambda error: self._note(f"exception: {error}"))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', e => "
            "console.error('policy violation: ' + e.violatedDirective + ' ' + e.blockedURI))"
        )

    def check(self) -> None:
        """Fail if there was any fault that the test did not mean."""
        faults = [fault for fault in self.faults if not any(re.search(pattern, fault) for pattern in self.allowed)]
        assert not faults, faults

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._note(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _frame(self, url: str, text: str | bytes) -> None:
        try:
            validate(json.loads(text), wall="/wall/" in url)
        except (ValidationError, ValueError, KeyError, AssertionError) as error:
            self._note(f"no frame of the published schema: {type(error).__name__}: {error}"[:1_000])

    def _note(self, fault: str) -> None:
        self.faults.append(fault)


@pytest.fixture
def strict() -> Strict:
    """What the page of this test did wrong; a test may allow what it provokes."""
    return Strict()


NewPage = Callable[..., Page]


@pytest.fixture(scope="session")
def contexts(site: Site, chromium: Browser, signed_in: Any) -> Contexts:
    """What the pages of all tests are opened in."""
    return Contexts(chromium, site.address, signed_in, PATIENCE)


@pytest.fixture
def new_page(contexts: Contexts, strict: Strict, store: Store) -> Iterator[NewPage]:
    """Open pages of the signed-in admin; each must be free of faults when the test ends.

    They are closed before the store is emptied: a page that is open would ask for queues that are gone.
    """
    opened: list[tuple[Page, dict[str, Any]]] = []

    def make(**options: Any) -> Page:
        page = contexts.open(**options)
        opened.append((page, options))
        if options.get("java_script_enabled", True):
            strict.watch(page)
        return page

    yield make
    for page, options in opened:
        contexts.close(page, **options)
    strict.check()


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """A page of the signed-in admin."""
    return new_page()


@pytest.fixture
def operator(page: Page) -> Operator:
    """The signed-in admin in front of a page."""
    return Operator(page)


def failing_store(page: Page, away: list[str]) -> None:
    """Have the page's socket told, once `away` says something, that the store is away: for five minutes, it says."""

    def through(route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        route.on_message(server.send)

        def down(message: str | bytes) -> None:
            seen = json.loads(message)
            if away and seen["t"] != "hello":
                seen = {"t": "store", "message": away[-1]} | {name: seen[name] for name in ("seq", "now")}
                seen["since"] = seen["now"] - 300
            route.send(json.dumps(seen))

        server.on_message(down)

    page.route_web_socket(re.compile("/live/"), through)


def wait_live(page: Page) -> None:
    """Wait until the page says that it is live."""
    page.wait_for_selector("[data-fresh][data-state=live]")


def open_live(page: Page, address: str) -> None:
    """Open a page and wait until it says that it is live."""
    page.goto(address)
    wait_live(page)


def until(page: Page, true: Callable[[], object], what: str = "it never came to be") -> None:
    """Wait until something is so that comes about by events of pages: a route was asked for, a message was heard."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < PATIENCE, what
        page.wait_for_timeout(20)  # lets events come in, whatever clock the page has


def reload_until_shown(page: Page, locator: Locator) -> None:
    """Reload a page without scripts until it shows something: a busy site's page may be some seconds old."""
    began = time.monotonic()
    while not locator.count():
        assert time.monotonic() - began < PATIENCE, page.content()
        page.reload()


def create_queues(store: Store, names: Iterable[str]) -> list[Queue]:
    """Create many queues in one transaction, in much less time than one by one."""
    return store.transact(lambda tr: [store.create_queue(name, tr=tr) for name in names])


def ready_of(name: str) -> str:
    """The selector of a queue's depth on the overview."""
    return f'tr[data-queue="{name}"] [data-field=ready]'


def wait_value(page: Page, selector: str, value: int | str) -> None:
    """Wait until an element carries this value."""
    page.wait_for_selector(f'{selector}[data-value="{value}"]')
