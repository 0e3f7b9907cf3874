"""`acts` through a server."""

from tests.commands.test_acts import *

#: A served site runs jobs by itself, at once.
del (
    test_all_items_are_moved_gone_on_with_and_undone,
    test_a_move_of_all_that_failed_says_so_and_is_not_gone_on_with,
)
