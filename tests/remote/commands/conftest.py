"""The tests of commands anew: on the store of a served site, with a token, beside the store itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pqadmin.commands import saved_tokens
from queues import Store
from tests.commands.conftest import Shop, run
from tests.emptying import emptied
from tests.server.conftest import Site

__all__ = ["run"]


@pytest.fixture
def store(site: Site, folder: Path) -> Iterator[Store]:
    """The site's own store, without queues; other files of tests use the same site."""
    with emptied(f"lmdb:{folder / 'store'}") as opened:
        yield opened


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
