"""Tests of all engines that need the store itself are left out here."""

from typing import Any

import pytest

from queues.errors import LocalStoreOnly


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Any:
    """Leave out a test as soon as it asks for what a server does not offer."""
    try:
        return (yield)
    except LocalStoreOnly:
        pytest.skip("needs the store itself")
