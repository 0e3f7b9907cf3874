"""`pqadmin undo`: undo an action or a bulk job."""

from pqadmin.commands.arguments import REASON, Argument, flag
from pqadmin.commands.bulk_jobs import check_done, run_jobs
from pqadmin.commands.store_command import Options, StoreCommand
from pqadmin.files.plain_text import items
from queues import Store, Undone


class Command(StoreCommand):
    """Undo an action by the id that it gave: items and queues return to what they were, where they were."""

    arguments = (
        Argument("id", metavar="ID", help="a trash id, or a bulk job"),
        flag("--partial", "leave alone the items that have changed since, undo the rest"),
        REASON,
    )

    def run(self, store: Store, options: Options) -> None:
        """Undo it and print what came back."""
        actions = self.actions(store)
        answers: list[Undone] = []

        def begin() -> list[str]:
            answers.append(actions.undo(options["id"], partial=options["partial"], reason=options["reason"]))
            return [undone.job.id for undone in answers if undone.job is not None]

        jobs = run_jobs(self, actions, begin)
        check_done(self, jobs)
        (undone,) = answers
        count, skipped = undone.count, undone.skipped
        for job in jobs:
            count, skipped = job.done, job.skipped
        more = [f"Left alone: {items(skipped, 'have changed since')}."] if skipped else []
        self.answer(
            {"queue": undone.queue, "items": count, "skipped": skipped},
            f"Undone in {undone.queue}: {items(count, 'are as before')}.",
            *more,
        )
