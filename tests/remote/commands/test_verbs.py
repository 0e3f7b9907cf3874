"""`verbs` through a server."""

from tests.commands.test_verbs import *

#: It compares ages that are told one after the other.
del test_what_one_asks_of_a_state_is_in_its_table
