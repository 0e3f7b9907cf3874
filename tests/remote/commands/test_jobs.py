"""`jobs` through a server."""

from tests.commands.test_jobs import *

#: A served site runs jobs by itself, at once.
del (
    test_a_job_is_listed_run_shown_and_undone,
    test_a_job_is_canceled_and_resumed,
    test_an_undo_that_was_canceled_goes_on,
    test_what_was_undone_is_not_undone_again,
    test_canceling_a_job_that_has_ended_is_refused,
)
