"""`verbs` through a server."""

from tests.commands.test_verbs import *  # noqa: F403

#: It compares ages that are told one after the other.
del test_what_one_asks_of_a_state_is_in_its_table  # noqa: F821
