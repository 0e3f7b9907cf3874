"""Push templates: filled push forms that people keep, to push similar items again."""

from django.db import models


class PushTemplate(models.Model):
    """A filled-in push form of a queue, kept under a name for all its users."""

    #: The queue's number: it stays through renames, and through deleting and restoring.
    queue_id = models.BigIntegerField()
    name = models.CharField(max_length=80)
    #: The fields of the form as they were typed.
    fields = models.JSONField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue_id", "name"], name="one_template_of_a_name")]

    def __str__(self) -> str:
        return self.name
