"""`commands` through a server."""

from tests.commands.test_commands import *

#: These need a store of their own, or damage it, or tell by which way an act came.
del (
    test_push_is_audited_under_the_name_of_the_system_user,
    test_a_program_pops_without_filling_the_trash,
    test_items_are_deleted_and_purged_for_good,
    test_peek_changes_nothing,
    test_tables_for_people_show_hostile_text_as_visible_characters,
    test_queues_are_created_paused_and_resumed,
    test_a_queue_that_cannot_be_read_is_a_line_that_says_so,
    test_a_store_that_cannot_be_opened_is_told_in_a_line,
    test_a_mistyped_path_makes_no_store,
    test_what_puts_something_into_a_store_makes_it,
    test_the_environment_does_not_choose_the_audited_name,
)
