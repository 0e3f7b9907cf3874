"""`targets` through a server."""

from tests.commands.test_targets import *
