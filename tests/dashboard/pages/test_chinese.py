"""Pages in Simplified Chinese: nothing of the English is left but names, units and words of the trade."""

import re
from collections.abc import Callable
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from django.conf import settings as django_settings

from pqadmin.accounts.rights import Role
from queues import Store
from tests.dashboard.conftest import Desk

#: Read out by the browser or shown on hover, besides the text itself.
ATTRIBUTES = {"title", "aria-label", "placeholder", "alt", "data-label", "data-copied", "data-canceled"}
#: Holds code, commands, what a person typed, and keys: not for translation.
UNTRANSLATED = {"code", "pre", "kbd", "script", "style", "bdi", "option", "textarea"}
#: Product, formats, protocols, units, and the words of the filter language and of FoundationDB.
ALLOWED = frozenset(
    """base pqadmin utc json ndjson csv fifo id ids msgpack base64 hex utf ctrl esc enter english lmdb foundationdb
    python http https cookie min max int float str kb mb days tab uuid none true false ascii fdbcli md drift docs
    level reason critical warning unknown ok no consumer none taken nothing done full growing retries old deep waits
    paused attached quiet stale state depth age kind delayed leased dead in out unreadable
    old priority count random index key value redacted eu new orders demo group favorite wait is glossary manage py
    gzip zlib purge work queue handlers module doctor repair sweep
    europe berlin asia shanghai test web cli api legacy jobs customer""".split()  # noqa: SIM905
)
WORD = re.compile(r"[A-Za-z]{2,}")
#: Bytes as Python writes them, places to fill in, ids, bytes in hexadecimal digits, addresses and names of fields.
NEUTRAL = re.compile(
    r"""\bb(?P<q>['"]).*?(?:(?P=q)|…|$)|"""
    r"%\(\w+\)s|\b0x[0-9a-f]+\b|\b[0-9a-f]{10,}\b|\b[0-9a-f]{2}(?: [0-9a-f]{2})*\b|/[a-z/]+/|\w+_\w+|\*\w+\*|\\\w+"
)


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNTRANSLATED:
            self._within.append(tag)
        self.texts.extend(value for name, value in attrs if name in ATTRIBUTES and value and not self._within)

    def handle_endtag(self, tag: str) -> None:
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.texts.append(data)


def english(html: str) -> list[str]:
    """Return the texts of a page in which English is left."""
    seen = _Seen()
    seen.feed(html)
    left = []
    for text in seen.texts:
        words = [word for word in WORD.findall(NEUTRAL.sub(" ", text)) if word.lower() not in ALLOWED]
        if words:
            left.append(f"{' '.join(words)}: {' '.join(text.split())[:120]}")
    return left


pytestmark = pytest.mark.usefixtures("english_again")


@pytest.fixture
def furnished(store: Store) -> dict[str, str]:
    """Something of everything, named and filled without a Latin letter."""
    own = store.create_queue("订单")
    item = own.push("值".encode(), priority=5)
    own.push(b'{"7": [1, 2]}', priority=1)
    own.push(b"\xff\x00", priority=2, delay=timedelta(hours=1))
    own.lease(seconds=600, worker="甲")
    store.create_queue("邮件", kind="fifo").enqueue(b"1")
    store.create_queue("停").pause(reason="结账", by="甲")
    acts = store.actions("甲")
    acts.push("订单", b"8", priority=9)
    acts.pop("订单", end="max")
    return {"name": "订单", "item_id": item.id}


PAGES = [
    "/",
    "/?group=group",
    "/?q=不存在",
    "/new/",
    "/attach/",
    "/palette/?q=订单",
    "/palette/?q={item_id}",
    "/palette/?here={name}&item={item_id}",
    "/keys/",
    "/jobs/",
    "/audit/",
    "/trash/",
    "/boards/",
    "/boards/new/",
    "/people/",
    "/people/new/",
    "/accounts/me/",
    "/accounts/password/",
    "/nothing-here/",
    "/queues/没有/",
    *(
        f"/queues/{{name}}/{path}"
        for path in (
            "",
            "?state=delayed",
            "?state=leased",
            "?state=dead",
            "?state=trash",
            "?q=7",
            "push/",
            "push/many/",
            "pop/?end=max",
            "pause/",
            "rename/",
            "delete/",
            "purge/",
            "settings/",
            "history/",
            "export/",
            "bulk/?act=move&state=ready",
            "bulk/?act=delete&state=ready",
            "items/{item_id}/",
            "items/{item_id}/edit/",
            "act/?act=move&id={item_id}",
            "act/?act=delete&id={item_id}",
            "act/?act=reprioritize&id={item_id}",
            "act/?act=delay&id={item_id}",
            "act/?act=lease&id={item_id}",
        )
    ),
    "/queues/邮件/",
    "/queues/停/",
]


def test_no_english_is_left(chinese_admin: Desk, furnished: dict[str, str]) -> None:
    left = {address: english(chinese_admin.open(address.format(**furnished)).html) for address in PAGES}
    assert not any(left.values()), left


def test_the_login_page_is_all_chinese(desk: Callable[..., Desk]) -> None:
    stranger = desk(Role.VIEWER)
    stranger.client.logout()
    stranger.client.cookies[django_settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    assert not english(stranger.open("/accounts/login/").html)
