"""`jobs` through a server."""

from tests.commands.test_jobs import *

#: A served site runs jobs by itself, at once.
del (
    test_a_job_is_listed_run_shown_and_undone,
    test_a_job_is_canceled_and_resumed,
    test_an_undo_that_was_canceled_goes_on,
    test_what_was_undone_is_not_undone_again,
    test_canceling_a_job_that_has_ended_is_refused,
    test_a_job_that_was_canceled_meanwhile_is_not_told_as_done,
    test_a_job_that_another_process_took_over_is_not_told_as_done,
    test_an_interrupted_job_is_told_with_its_id,
)
