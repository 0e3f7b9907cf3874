"""`import_items` through a server."""

from tests.commands.test_import import *

#: They tell by which way an act came, write into the store of this process, with another clock, or make it fail.
del (
    test_resume_goes_on_from_what_was_pushed_last_whatever_the_clocks_say,
    test_each_chunk_is_one_audited_act,
    test_what_the_store_refuses_is_told_with_the_last_committed_line,
)
