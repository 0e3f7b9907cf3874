"""`top` through a server."""

import pytest

from queues import Store
from tests.commands import test_top
from tests.commands.test_top import (
    test_keys_filter_open_pause_and_resume as test_keys_filter_open_pause_and_resume,
)
from tests.remote.commands.conftest import store as empty
from tests.remote.commands.conftest import url as url

__all__ = ["empty"]


@pytest.fixture
def store(empty: Store) -> Store:
    """The store of the site with the queues of these tests."""
    test_top.fill(empty)
    return empty
