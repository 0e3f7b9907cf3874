"""`queues` through a server."""

from tests.commands.test_queues import *
from tests.remote.commands.conftest import store as store
from tests.remote.commands.conftest import url as url

#: It damages a record of the store.
del test_trouble_lists_what_is_not_ok_the_worst_first
