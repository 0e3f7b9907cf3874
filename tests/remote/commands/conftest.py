"""The tests of commands anew: on the store of a served site, with a token, beside the store itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pqadmin.commands import saved_tokens
from queues import Store, open_store
from tests.commands.conftest import Shop, run
from tests.server.conftest import Site

__all__ = ["run"]


@pytest.fixture
def store(site: Site, folder: Path) -> Iterator[Store]:
    """The site's own store; what a test makes in it is removed."""
    with open_store(f"lmdb:{folder / 'store'}") as opened:
        yield opened
        for name in opened.directory():
            queue = opened.queue(name)
            opened.detach(name) if queue.attached else opened.delete_queue(name)
        for pattern in opened.targets.patterns():
            opened.targets.remove(pattern)


@pytest.fixture
def shop(store: Store, site: Site, secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The store, and the address of the site, for which a token is kept."""
    monkeypatch.setenv("HOME", str(tmp_path))
    saved_tokens.keep(site.address, secret)
    return Shop(store=store, url=site.address)


@pytest.fixture
def url(shop: Shop) -> str:
    """The address of the site."""
    return shop.url
