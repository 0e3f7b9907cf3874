"""`tail` through a server."""

from tests.commands.test_tail import *
from tests.remote.commands.conftest import store as store
from tests.remote.commands.conftest import url as url
