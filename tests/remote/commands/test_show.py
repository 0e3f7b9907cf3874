"""`show` through a server."""

from tests.commands.test_show import *
